"""Preference losses of one batch, of Foresail's and of TRL's trainers, in float32 on a CPU.

Weights, pairs and the reference, another model, are the same on both sides. Foresail packs prompts once, into
several micro-batches, and asks the reference by packed passes; TRL pads everything into one batch. What must agree:
the loss, the metrics of the same name, and the gradient of every parameter.

TRL's sigmoid loss has no label smoothing; its `aot` does, and of a single pair it is conservative DPO: there TRL
gets the pairs one by one. SimPO is CPOTrainer's.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from losses import GradientKeeper, make_model
from process import HERE, replies
from safetensors.torch import load_file
from torch import Tensor

from foresail.algorithms.preference_losses import preference_loss
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model, save_model
from foresail.model.hf_names import weight_parts
from foresail.recipe.tables.preferences import PreferenceLoss
from foresail.records import TrainPair, TrainSequence
from foresail.train.learner import Learner
from foresail.train.references.reference import score_compared, with_reference
from foresail.train.stages.dpo import over_pairs
from foresail.train.update.scoring import score_sequences
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import token_loss, train_step
from foresail.world import ONE_PROCESS

PAIRS, PROMPT_LENGTHS, ANSWER_LENGTHS = 10, (3, 20), (1, 40)
MICRO_BATCH_TOKENS = 200
CPU = torch.device("cpu")
LIMIT = 1e-5


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One loss as both name it."""

    name: str
    ours: PreferenceLoss
    theirs: dict[str, Any]


SETTINGS = (
    Setting(name="DPO", ours=PreferenceLoss(beta=0.3), theirs={"loss_type": "sigmoid", "beta": 0.3}),
    Setting(
        name="DPO, label smoothing",
        ours=PreferenceLoss(beta=0.3, label_smoothing=0.2),
        theirs={"loss_type": "aot", "beta": 0.3, "label_smoothing": 0.2, "one_by_one": True},
    ),
    Setting(
        name="DPO by the token",
        ours=PreferenceLoss(kind="sigmoid_norm", beta=2.0),
        theirs={"loss_type": "sigmoid_norm", "beta": 2.0},
    ),
    Setting(name="IPO", ours=PreferenceLoss(kind="ipo", beta=0.5), theirs={"loss_type": "ipo", "beta": 0.5}),
    Setting(
        name="hinge", ours=PreferenceLoss(kind="hinge", beta=0.3), theirs={"loss_type": "hinge", "beta": 0.3}
    ),
    Setting(
        name="robust DPO",
        ours=PreferenceLoss(kind="robust", beta=0.3, label_smoothing=0.1),
        theirs={"loss_type": "robust", "beta": 0.3, "label_smoothing": 0.1},
    ),
    Setting(
        name="SimPO",
        ours=PreferenceLoss(kind="simpo", beta=2.0, gamma=0.5),
        theirs={"loss_type": "simpo", "beta": 2.0, "simpo_gamma": 0.5},
    ),
    Setting(
        name="SimPO, label smoothing",
        ours=PreferenceLoss(kind="simpo", beta=2.0, gamma=1.0, label_smoothing=0.1),
        theirs={"loss_type": "simpo", "beta": 2.0, "simpo_gamma": 1.0, "label_smoothing": 0.1},
    ),
    Setting(
        name="DPO, SFT term",
        ours=PreferenceLoss(beta=0.3, sft_weight=0.5),
        theirs={"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.5], "beta": 0.3},
    ),
)


def measure_losses(folder: Path, peer_python: str) -> dict[str, Any]:
    """Figures by setting; `agrees` says whether all lie within the limit."""
    model, reference = make_model(folder / "model"), make_reference(folder / "reference", folder / "model")
    pairs = make_pairs()
    score = partial(
        score_sequences, reference, temperature=1.0, micro_batch_tokens=MICRO_BATCH_TOKENS, device=CPU
    )
    logprobs = score_compared(score, pairs)
    compared_pairs = with_reference(pairs, logprobs)
    *rows, versions = ask_for_losses(folder, pairs, peer_python)
    print(
        f"\nPreference losses and gradients of one batch, float32: {PAIRS} pairs\n  "
        f"{'':<24}{'loss':>12}{'difference':>12}{'gradient norm':>15}{'difference':>12}{'metrics':>12}"
    )
    figures: dict[str, Any] = {"limit": LIMIT, "settings": {}, **versions}
    for number, (setting, theirs) in enumerate(zip(SETTINGS, rows, strict=True)):
        gradients = load_file(folder / f"{number}.safetensors")
        differences = compare(model, compared_pairs, setting, theirs, gradients)
        figures["settings"][setting.name] = differences
        print(
            f"  {setting.name:<24}{differences['loss']:>12.6f}{differences['loss_difference']:>12.1e}"
            f"{differences['gradient_norm']:>15.6f}{differences['gradient_difference']:>12.1e}"
            f"{differences['metric_difference']:>12.1e}",
            flush=True,
        )
    figures["agrees"] = all(
        max(differences["loss_difference"], differences["gradient_difference"]) < LIMIT
        for differences in figures["settings"].values()
    )
    return figures


def make_reference(folder: Path, model: Path) -> Decoder:
    """Weights of another seed, with the model's own shape."""
    from foresail.recipe.shape.hf_config import read_shape

    reference = build_model(read_shape(str(model)), seed=1)
    save_model(reference, folder)
    return reference


def make_pairs() -> list[TrainPair]:
    draw = random.Random(0)

    def some(lengths: tuple[int, int]) -> list[int]:
        return [draw.randrange(96) for _ in range(draw.randint(*lengths))]

    def sequence(prompt: list[int], answer: list[int]) -> TrainSequence:
        return TrainSequence(ids=prompt + answer, loss_mask=[0] * len(prompt) + [1] * len(answer))

    pairs = []
    for number in range(PAIRS):
        prompt = some(PROMPT_LENGTHS)
        chosen, rejected = sequence(prompt, some(ANSWER_LENGTHS)), sequence(prompt, some(ANSWER_LENGTHS))
        pairs.append(TrainPair(name=str(number), chosen=chosen, rejected=rejected))
    return pairs


def as_ids(pair: TrainPair) -> dict[str, list[int]]:
    """As TRL has a pair that is tokenised: without what stands behind the last token with a loss."""
    start = pair.chosen.loss_mask.index(1)

    def answer(sequence: TrainSequence) -> list[int]:
        last = max(place for place, learned in enumerate(sequence.loss_mask) if learned)
        return sequence.ids[start : last + 1]

    return {
        "prompt_ids": pair.chosen.ids[:start],
        "chosen_ids": answer(pair.chosen),
        "rejected_ids": answer(pair.rejected),
    }


def ask_for_losses(folder: Path, pairs: list[TrainPair], peer_python: str) -> list[dict[str, Any]]:
    request = {
        "checkpoint": str(folder / "model"),
        "reference": str(folder / "reference"),
        "pairs": [as_ids(pair) for pair in pairs],
        "settings": [setting.theirs for setting in SETTINGS],
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [peer_python, str(HERE / "peer_dpo.py"), "losses", str(folder)]
    return list(replies(command, folder / "trl.log", 300))


def compare(
    model: Decoder,
    pairs: list[TrainPair],
    setting: Setting,
    theirs: dict[str, Any],
    their_gradients: dict[str, Tensor],
) -> dict[str, float]:
    keeper = GradientKeeper(model)
    learner = Learner(name="policy", model=model, optimizer=keeper)
    batches = [*pack_answer_share(pairs, ONE_PROCESS, max_tokens=MICRO_BATCH_TOKENS, device=CPU)]
    loss = partial(token_loss, loss=partial(preference_loss, settings=setting.ours))
    ours = dict(over_pairs(train_step(learner, batches, loss, learning_rate=0.0), pairs))
    squares, square = 0.0, 0.0
    for part in weight_parts(model.shape):
        gradient = keeper.kept[part.parameter].narrow(0, part.start, part.sizes[0])
        their_gradient = their_gradients.pop(part.hf_name)
        squares += (gradient - their_gradient).double().square().sum().item()
        square += their_gradient.double().square().sum().item()
    assert not their_gradients, f"TRL has gradients of {sorted(their_gradients)}, Foresail has none"
    metrics = [abs(ours[name] - value) for name, value in theirs["metrics"].items()]
    return {
        "loss": ours["loss"],
        "loss_difference": abs(ours["loss"] - theirs["loss"]),
        "gradient_norm": square**0.5,
        "gradient_difference": (squares / square) ** 0.5,
        "metric_difference": max(metrics),
        "micro_batches": len(batches),
    }
