"""The losses part of `vs_trl.py`: one batch through Foresail's and through TRL's losses, in float32 on a CPU.

Weights, samples, advantages, old and reference log-probabilities are the same on both sides; the old ones lie far
enough from the current ones that bounds act. Foresail packs the samples into several micro-batches, TRL pads them
into one. What must agree: the loss, and the gradient of every parameter. Advantages are compared apart, since TRL
divides by the spread plus 1e-4 and Foresail by the spread plus 1e-6.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from process import ask_peer
from safetensors.torch import load_file
from torch import Tensor

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.entropy import bonus_weight
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, save_model
from foresail.model.hf_names import weight_parts
from foresail.model.packed import token_logprobs
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables import parts
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch, TrainSequence
from foresail.tokenizer.train import train_bpe
from foresail.train.learner import Learner
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.policy.loss import PolicyTerms, batch_loss
from foresail.train.policy.policy_update import choose_top_entropy
from foresail.train.update.step import train_step
from foresail.world import ONE_PROCESS

GROUPS, SAMPLES, MAX_NEW_TOKENS, TEMPERATURE = 4, 6, 40, 0.8
PROMPT_LENGTHS, COMPLETION_LENGTHS = (3, 12), (1, MAX_NEW_TOKENS)
MICRO_BATCH_TOKENS = 200  # four micro-batches
UNCLIPPED = 1e9
LIMIT = 1e-5


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One algorithm as both name it."""

    name: str
    ours: Loss
    advantage: str
    theirs: dict[str, Any]


DAPO = {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28}
SETTINGS = (
    Setting(
        name="GRPO",
        ours=Loss(clip_low=0.2, clip_high=0.2, aggregation="seq-mean-token-mean"),
        advantage="grpo",
        theirs={"loss_type": "grpo", "epsilon": 0.2},
    ),
    Setting(
        name="DAPO",
        ours=Loss(clip_low=0.2, clip_high=0.28, aggregation="token-mean"),
        advantage="grpo",
        theirs=DAPO,
    ),
    Setting(
        name="Dr. GRPO",
        ours=Loss(clip_low=0.2, clip_high=0.2, aggregation="constant"),
        advantage="dr_grpo",
        theirs={"loss_type": "dr_grpo", "epsilon": 0.2, "scale_rewards": "none"},
    ),
    Setting(
        name="GSPO",
        ours=Loss(kind="gspo", clip_low=3e-4, clip_high=4e-4, aggregation="seq-mean-token-mean"),
        advantage="grpo",
        theirs={
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon": 3e-4,
            "epsilon_high": 4e-4,
        },
    ),
    Setting(
        name="CISPO",  # TRL's bound is the ratio itself, and there is none below
        ours=Loss(kind="cispo", clip_low=1.0, clip_high=0.3, aggregation="token-mean"),
        advantage="grpo",
        theirs={"loss_type": "cispo", "epsilon_high": 1.3},
    ),
    Setting(
        name="GRPO, KL term",
        ours=Loss(clip_low=0.2, clip_high=0.2, aggregation="seq-mean-token-mean", kl_weight=0.04),
        advantage="grpo",
        theirs={"loss_type": "grpo", "epsilon": 0.2, "beta": 0.04, "use_bias_correction_kl": False},
    ),
    Setting(
        name="DAPO, dual clip",
        ours=Loss(clip_low=0.2, clip_high=0.28, aggregation="token-mean", dual_clip=1.5),
        advantage="grpo",
        theirs={**DAPO, "delta": 1.5},
    ),
    Setting(
        name="SAPO",
        ours=Loss(kind="sapo", aggregation="seq-mean-token-mean"),
        advantage="grpo",
        theirs={"loss_type": "sapo"},
    ),
    Setting(
        name="unbiased KL term",
        ours=Loss(clip_low=0.2, clip_high=0.28, kl="k3_unbiased", kl_weight=0.04),
        advantage="grpo",
        theirs={**DAPO, "beta": 0.04, "use_bias_correction_kl": True},
    ),
    Setting(
        name="off-policy mask",
        ours=Loss(clip_low=0.2, clip_high=0.28, off_policy_mask_threshold=0.05),
        advantage="grpo",
        theirs={**DAPO, "off_policy_mask_threshold": 0.05},
    ),
    Setting(
        name="top entropy",
        ours=Loss(clip_low=0.2, clip_high=0.28, top_entropy_quantile=0.2, old_logprobs="trainer"),
        advantage="grpo",
        theirs={**DAPO, "top_entropy_quantile": 0.2},
    ),
    Setting(
        name="entropy bonus",
        ours=Loss(clip_low=0.2, clip_high=0.28, entropy_weight=0.1),
        advantage="grpo",
        theirs={**DAPO, "entropy_coef": 0.1},
    ),
)


def measure_losses(folder: Path, peer_python: str) -> dict[str, Any]:
    """Figures by setting; `agrees` says whether all lie within the limit."""
    model = make_model(folder / "model")
    sequences, rewards_GN = make_samples(model)
    figures: dict[str, Any] = {"limit": LIMIT, "settings": {}}
    print(
        f"\nLosses and gradients of one batch, float32: {GROUPS} × {SAMPLES} samples\n  "
        f"{'':<18}{'loss':>12}{'difference':>12}{'gradient norm':>15}{'difference':>12}{'clipped':>9}"
        f"{'advantages':>12}"
    )
    for kind in sorted({setting.advantage for setting in SETTINGS}):
        chosen = [setting for setting in SETTINGS if setting.advantage == kind]
        advantages_GN = ADVANTAGES[kind](rewards_GN, torch.ones_like(rewards_GN))
        with_advantages = give_advantages(sequences, advantages_GN)
        replies = ask_for_losses(
            folder / kind, folder / "model", with_advantages, rewards_GN, chosen, peer_python
        )
        *rows, versions = replies
        for number, (setting, theirs) in enumerate(zip(chosen, rows, strict=True)):
            gradients = load_file(folder / kind / f"{number}.safetensors")
            compared = compare(model, with_advantages, setting, theirs, gradients)
            own = torch.tensor(theirs["advantages"])
            compared["advantage_difference"] = (own - advantages_GN.flatten()).abs().max().item()
            figures["settings"][setting.name] = compared
            print(describe(setting.name, compared), flush=True)
        figures |= versions
    figures["agrees"] = all(
        max(figures_of["loss_difference"], figures_of["gradient_difference"]) < LIMIT
        for figures_of in figures["settings"].values()
    )
    return figures


def describe(name: str, differences: dict[str, float]) -> str:
    return (
        f"  {name:<18}{differences['loss']:>12.6f}{differences['loss_difference']:>12.1e}"
        f"{differences['gradient_norm']:>15.6f}{differences['gradient_difference']:>12.1e}"
        f"{differences['clipped']:>9.1%}{differences['advantage_difference']:>12.1e}"
    )


# The batch.


def make_model(folder: Path) -> Decoder:
    """A tiny Llama, also saved for TRL."""
    tokenizer = train_bpe(["0123456789 +-*="], vocab_size=64, alphabet="seen")
    shape = ModelShape(
        family="llama",
        vocab_size=96,
        hidden_size=64,
        intermediate_size=160,
        num_layers=3,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        max_context=128,
        tied=False,
    )
    model = build_model(shape, seed=0)
    save_model(model, folder)
    tokenizer.save(folder)
    return model


def make_samples(model: Decoder) -> tuple[list[TrainSequence], Tensor]:
    """Samples of unequal length with rewards; old and reference log-probabilities are current ones with noise."""
    draw = random.Random(0)
    sequences = []
    for _ in range(GROUPS):
        prompt = [draw.randrange(96) for _ in range(draw.randint(*PROMPT_LENGTHS))]
        for _ in range(SAMPLES):
            completion = [draw.randrange(96) for _ in range(draw.randint(*COMPLETION_LENGTHS))]
            mask = [0] * len(prompt) + [1] * len(completion)
            bare = TrainSequence(ids=prompt + completion, loss_mask=mask)
            with torch.no_grad():
                now = token_logprobs(model, pack([bare], [1.0], max_tokens=64)[0], TEMPERATURE)[0].tolist()
            old, reference = ([value + draw.gauss(0, 0.3) for value in now] for _ in range(2))
            sequences.append(
                TrainSequence(
                    ids=bare.ids,
                    loss_mask=mask,
                    old_logprobs=[0.0] * len(prompt) + old,
                    ref_logprobs=[0.0] * len(prompt) + reference,
                )
            )
    rewards_GN = torch.tensor([[float(draw.random() < 0.4) for _ in range(SAMPLES)] for _ in range(GROUPS)])
    return sequences, rewards_GN


def give_advantages(sequences: list[TrainSequence], advantages_GN: Tensor) -> list[TrainSequence]:
    return [
        TrainSequence(
            ids=sequence.ids,
            loss_mask=sequence.loss_mask,
            advantages=[advantage] * len(sequence.ids),
            old_logprobs=sequence.old_logprobs,
            rollout_logprobs=sequence.old_logprobs,
            ref_logprobs=sequence.ref_logprobs,
        )
        for sequence, advantage in zip(sequences, advantages_GN.flatten().tolist(), strict=True)
    ]


# The two sides.


def ask_for_losses(
    folder: Path,
    model: Path,
    sequences: list[TrainSequence],
    rewards_GN: Tensor,
    settings: list[Setting],
    peer_python: str,
) -> list[dict[str, Any]]:
    """One reply per setting, and the versions."""
    starts = [sequence.loss_mask.index(1) for sequence in sequences]

    def responses(name: str) -> list[list[float]]:
        return [getattr(s, name)[start:] for s, start in zip(sequences, starts, strict=True)]

    request = {
        "checkpoint": str(model),
        "prompts": [s.ids[:start] for s, start in zip(sequences, starts, strict=True)],
        "completions": responses("ids"),
        "old_logprobs": responses("old_logprobs"),
        "ref_logprobs": responses("ref_logprobs"),
        "advantages": [s.advantages[0] for s in sequences if s.advantages is not None],
        "rewards": rewards_GN.flatten().tolist(),
        "samples_per_prompt": SAMPLES,
        "max_new_tokens": MAX_NEW_TOKENS,
        "temperature": TEMPERATURE,
        "settings": [setting.theirs for setting in settings],
    }
    folder.mkdir()
    (folder / "request.json").write_text(json.dumps(request))
    return list(ask_peer(peer_python, "losses", folder, seconds=300))


class GradientKeeper(MasterAdamW):
    """Keeps the gradient by the weight's name instead of using it."""

    def __init__(self, model: Decoder) -> None:
        super().__init__(model, parts.Optimizer(clip_norm=UNCLIPPED))
        self.kept: dict[str, Tensor] = {}

    def update(self, learning_rate: float) -> None:
        by_name = {name: self.gradients[number] for number, name in enumerate(self.names)}
        self.kept = {name: gradient.clone() for name, gradient in by_name.items() if gradient is not None}
        self.zero_grad()


@torch.no_grad()
def with_entropies(model: Decoder, batches: list[PackedBatch], settings: Loss) -> list[PackedBatch]:
    """With which tokens learn, where that goes by entropy: of the weights as they are, as in TRL."""
    if not settings.ranks_entropy:
        return batches
    asked = [replace(batch, entropy_M=token_logprobs(model, batch, TEMPERATURE)[1]) for batch in batches]
    return choose_top_entropy(asked, settings.top_entropy_quantile, ONE_PROCESS)


def compare(
    model: Decoder,
    sequences: list[TrainSequence],
    setting: Setting,
    theirs: dict[str, Any],
    their_gradients: dict[str, Tensor],
) -> dict[str, float]:
    weights = token_weights([sum(s.loss_mask) for s in sequences], setting.ours.aggregation, MAX_NEW_TOKENS)
    batches = with_entropies(model, pack(sequences, weights, max_tokens=MICRO_BATCH_TOKENS), setting.ours)
    keeper = GradientKeeper(model)
    learner = Learner(name="policy", model=model, optimizer=keeper)
    terms = PolicyTerms(
        settings=setting.ours, on_policy=False, entropy_weight=bonus_weight(None, setting.ours)
    )
    loss = partial(batch_loss, terms=terms, temperature=TEMPERATURE)
    ours = train_step(learner, batches, loss, learning_rate=0.0)
    squares, square = 0.0, 0.0
    for part in weight_parts(model.shape):
        gradient = keeper.kept[part.parameter].narrow(0, part.start, part.sizes[0])
        their_gradient = their_gradients.pop(part.hf_name)
        squares += (gradient - their_gradient).double().square().sum().item()
        square += their_gradient.double().square().sum().item()
    assert not their_gradients, f"TRL has gradients of {sorted(their_gradients)}, Foresail has none"
    return {
        "loss": ours["loss"],
        "loss_difference": abs(ours["loss"] - theirs["loss"]),
        "gradient_norm": square**0.5,
        "gradient_difference": (squares / square) ** 0.5,
        "clipped": ours["actor/pg_clipfrac"],
        "their_clipped": theirs["clipped"],
        "micro_batches": len(batches),
    }
