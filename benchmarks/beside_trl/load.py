"""What both sides of `vs_trl.py` do in the speed part: one checkpoint, one file of problems, one recipe.

A checkpoint here has random weights, and its end-of-sequence token never comes, so that both sides draw exactly
the same number of tokens by their ordinary ways, with no setting that only one of them has.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from process import HERE

from foresail.data.made.arithmetic import make_problems
from foresail.data.problems.problems import load_problems
from foresail.data.problems.prompts import encode_problems
from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model, save_model
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables import parts
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import ProblemSource
from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

SHARED = 0  # a coordinate of the residual stream
NEVER = 10**9  # steps between checkpoints


@dataclass(frozen=True, kw_only=True)
class Load:
    """The same model, prompts, samples, lengths, updates and precision for both.

    A prompt has two tokens an operation and a few more. `micro_batches` is per update: as many samples go
    through the model at once on either side.
    """

    name: str
    shape: ModelShape
    device: Literal["cpu", "cuda"]
    prompts: int
    samples: int
    operations: int
    new_tokens: int
    updates: int
    micro_batches: int
    page_size: int = 16

    @property
    def responses(self) -> int:
        return self.prompts * self.samples

    @property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        """Of the weights that are computed with; sums and moments of the optimiser are float32 on both sides."""
        return "bfloat16" if self.device == "cuda" else "float32"


# Making it.


def prepare(load: Load, checkpoint: Path, steps: int) -> int:
    """Write checkpoint and problems for so many steps; the tokens of a prompt, which are as many in all."""
    tokenizer = make_checkpoint(checkpoint, load)
    make_problem_file(checkpoint / "problems.jsonl", load, load.prompts * steps)
    problems = load_problems(parts.Problems(source=str(checkpoint / "problems.jsonl")))
    lengths = {len(entry.ids) for entry in encode_problems(problems, tokenizer, load.shape.max_context)}
    assert len(lengths) == 1, f"prompts of {sorted(lengths)} tokens"
    return lengths.pop()


def make_checkpoint(folder: Path, load: Load) -> Tokenizer:
    """Random weights whose end-of-sequence token never comes."""
    tokenizer = arithmetic_tokenizer(load.shape.vocab_size)
    model = random_model(load.shape, load.device, load.dtype)
    silence(model, tokenizer.eos_ids)
    save_checkpoint(folder, model, tokenizer)
    del model
    torch.cuda.empty_cache()  # the sides need the room
    return tokenizer


def arithmetic_tokenizer(vocab_size: int) -> Tokenizer:
    """As large as a model's vocabulary; digits are tokens."""
    texts = [problem.prompt[-1].content for problem in make_problems(200, seed=0)]
    return enlarge(train_bpe(texts, vocab_size=64, alphabet="seen"), vocab_size)


def random_model(shape: ModelShape, device: str, dtype: str) -> Decoder:
    """Drawn on the device."""
    model = empty_model(shape, dtype=getattr(torch, dtype), device=device)
    randomise(model)
    return model


def save_checkpoint(folder: Path, model: Decoder, tokenizer: Tokenizer) -> None:
    save_model(model, folder)
    tokenizer.save(folder)


@torch.no_grad()
def randomise(model: Decoder) -> None:
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
        else:
            parameter.normal_(std=parameter.shape[1] ** -0.5)


@torch.no_grad()
def silence(model: Decoder, eos_ids: tuple[int, ...]) -> None:
    """Make these ids impossible: one coordinate has the same value in every embedding, no block writes to it,
    and their rows of the head are turned against it."""
    model.embed.weight[:, SHARED] = 2.0
    for name, parameter in model.named_parameters():
        if name.endswith(("attention.out.weight", "mlp.down.weight")):
            parameter[SHARED] = 0.0
    head_VD = model.head.weight if model.head is not None else model.embed.weight
    for token in eos_ids:
        head_VD[token] = 0.0
        head_VD[token, SHARED] = -20.0


def enlarge(tokenizer: Tokenizer, vocab_size: int) -> Tokenizer:
    """Every id below `vocab_size` gets a text, as in a real vocabulary: any of them may be drawn."""
    definition = json.loads(tokenizer.files.definition)
    vocabulary = definition["model"]["vocab"]
    vocabulary |= {f"w{number}": number for number in range(tokenizer.vocab_size, vocab_size)}
    files = TokenizerFiles(
        definition=json.dumps(definition, ensure_ascii=False),
        config=tokenizer.files.config,
        chat_template=tokenizer.files.chat_template,
    )
    return Tokenizer(files)


def make_problem_file(file: Path, load: Load, count: int) -> None:
    problems = make_problems(count, seed=0, steps=(load.operations, load.operations))
    rows = [
        {"id": problem.id, "prompt": problem.prompt[-1].content, "answer": problem.answer}
        for problem in problems
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


# Asking for it.


def our_recipe(
    load: Load, folder: Path, checkpoint: Path, *, steps: int, prompt_tokens: int, recompute: bool = False
) -> Rl:
    """The problems as they come, none filtered; rewards, clip bounds and aggregation as TRL has them."""
    length = prompt_tokens + load.new_tokens
    return Rl(
        run=parts.Run(name="ours", root=str(folder), device=load.device),
        model=parts.Model(path=str(checkpoint), dtype=load.dtype),
        data=(ProblemSource(source=str(checkpoint / "problems.jsonl")),),
        steps=steps,
        prompts_per_step=load.prompts,
        samples_per_prompt=load.samples,
        updates_per_step=load.updates,
        max_prompt_tokens=prompt_tokens,
        recompute=recompute,
        micro_batch_tokens=load.responses // (load.updates * load.micro_batches) * length,
        sampling=parts.Sampling(max_new_tokens=load.new_tokens),
        loss=Loss(clip_low=0.2, clip_high=0.2),
        reward=Reward(grader=f"{HERE / 'reward_functions.py'}:parity", workers=0),
        dynamic_sampling=DynamicSampling(enabled=False),
        engine=parts.Engine(page_size=load.page_size, max_running=load.responses),
        checkpoints=parts.Checkpoints(every=NEVER),
    )


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `peer.py steps` is asked for; `settings` are more arguments of TRL's own.

    `dtype` is that of the weights: float32 is TRL's mixed precision on a GPU, bfloat16 has no float32 copy and an
    optimiser in bfloat16. With `save` the end is left there.
    """

    checkpoint: str
    data: str
    reward: str
    device: str
    dtype: str
    seed: int
    steps: int
    prompts_per_step: int
    samples_per_prompt: int
    updates_per_step: int
    micro_batches: int
    max_new_tokens: int
    recompute: bool
    settings: dict[str, Any]
    save: str | None = None


def their_request(load: Load, checkpoint: Path, *, steps: int, weights: str, recompute: bool) -> Request:
    return Request(
        checkpoint=str(checkpoint),
        data=str(checkpoint / "problems.jsonl"),
        reward=f"{HERE / 'reward_functions.py'}:parity",
        device=load.device,
        dtype=weights,
        seed=0,
        steps=steps,
        prompts_per_step=load.prompts,
        samples_per_prompt=load.samples,
        updates_per_step=load.updates,
        micro_batches=load.micro_batches,
        max_new_tokens=load.new_tokens,
        recompute=recompute,
        settings={"learning_rate": 1e-6},
    )


def write_recipe(folder: Path, recipe: Rl) -> None:
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(to_toml(recipe))


def write_request(folder: Path, request: Request) -> None:
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(asdict(request)))
