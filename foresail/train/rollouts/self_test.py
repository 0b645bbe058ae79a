"""Three checks of the real model before the first step.

1. Engine and trainer give the same log-probabilities to the same tokens.
2. A saved checkpoint, loaded again, gives the same logits.
3. The loss and its gradient do not depend on the micro-batches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from foresail.data.packing import pack
from foresail.data.problems.prompts import PromptedProblem
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.model.lora import LowRankLinear
from foresail.model.packed import run_packed, token_logprobs
from foresail.model.readouts import logits_at
from foresail.model.shards import corrections_of, local
from foresail.records import PackedBatch, RunStopped, TrainSequence
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec, requests, to_sample
from foresail.runlog.atomic import ASIDE, explained
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import arrangement, save_weights
from foresail.world import ONE_PROCESS, World

NUM_PROMPTS = 4
MAX_NEW_TOKENS = 64


class SelfTestFailed(RunStopped):
    """The run must not start: its numbers could not be trusted."""


def self_test(
    model: Decoder,
    tokenizer: Tokenizer,
    fleet: Fleet,
    problems: Sequence[PromptedProblem],
    group_spec: GroupSpec,
    folder: Path,
    trained: Callable[[list[TrainSequence], float], float] | None = None,
    saved: Callable[[list[TrainSequence]], float] | None = None,
) -> dict[str, float]:
    """Raises at the first failed check; else the differences that were found.

    `model` is what the engines read; where that is a copy of what is trained, `trained` checks the latter. Where
    it is only a part of it, `saved` saves the whole.
    """
    sequences = sample_sequences(fleet, problems[:NUM_PROMPTS], group_spec)
    temperature = group_spec.sampling.temperature
    return {
        "selftest/logprob_diff": check_logprobs(model, sequences, temperature)
        if trained is None
        else trained(sequences, temperature),
        "selftest/saved_logits_diff": check_save(model, tokenizer, sequences, folder)
        if saved is None
        else saved(sequences),
        "selftest/micro_batch_diff": check_micro_batches(model, sequences),
    }


def sample_sequences(
    fleet: Fleet, problems: Sequence[PromptedProblem], group_spec: GroupSpec
) -> list[TrainSequence]:
    """A few short responses from the whole distribution, so that the engine reports the policy's own
    probabilities.
    """
    limit = min(MAX_NEW_TOKENS, group_spec.sampling.max_new_tokens)
    untruncated = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_new_tokens": limit, "thinking_budget": None}
    spec = replace(group_spec, sampling=group_spec.sampling.model_copy(update=untruncated), num_samples=2)
    batch = [request for group, entry in enumerate(problems) for request in requests(entry, spec, group)]
    with fleet.at_work():
        samples = [to_sample(completion) for completion in fleet.generate(batch)]
    return [
        TrainSequence(
            name=f"self-test sample {number}",
            ids=sample.ids,
            loss_mask=sample.loss_mask,
            rollout_logprobs=sample.logprobs,
        )
        for number, sample in enumerate(samples)
    ]


@torch.no_grad()
def check_logprobs(model: Decoder, sequences: list[TrainSequence], temperature: float) -> float:
    batch = whole_batch(model, sequences)
    logprobs_M, _ = token_logprobs(model, batch, temperature)
    assert batch.rollout_logprobs_M is not None, "the sequences come from the engine"
    difference = (logprobs_M - batch.rollout_logprobs_M).abs().mean().item()
    limit = 1e-4 if model.dtype == torch.float32 else 5e-2
    if not difference <= limit:
        raise SelfTestFailed(
            f"engine and trainer disagree on log-probabilities by {difference:.2e} on average (at most "
            f"{limit:.0e} is sound for {model.dtype}); the rollouts are not from the policy that is trained. "
            'Set model.dtype = "float32" to see whether precision is the cause, and report it if it stays'
        )
    return difference


@torch.no_grad()
def check_save(
    model: Decoder,
    tokenizer: Tokenizer,
    sequences: list[TrainSequence],
    folder: Path,
    world: World = ONE_PROCESS,
) -> float:
    """Every rank calls it; each saves and loads its own shards."""
    batch = whole_batch(model, sequences)
    with explained(folder), temporary_folder(folder) if world.rank == 0 else nullcontext("") as mine:
        saved = world.broadcast(mine)
        save_weights(model, tokenizer, Path(saved), None, world)
        world.all_gather(None)  # all files are there
        shared = arrangement(None, world)
        loaded = load_model(saved, dtype=model.dtype, device=model.device, arrange=shared)
        world.all_gather(None)  # and were read
    if any(isinstance(module, LowRankLinear) for module in model.modules()):
        # what is merged is rounded once more
        difference = (logits(model, batch) - logits(loaded, batch)).abs().mean().item()
        sound = difference <= (1e-4 if model.dtype == torch.float32 else 0.5)
        why = "more than merging rounds"
    else:
        unequal = [name for names in world.all_gather(unequal_weights(model, loaded)) for name in names]
        difference = float(world.max((logits(model, batch) - logits(loaded, batch)).abs().max().item()))
        sound = difference == 0
        why = f"other weights: {', '.join(unequal[:4])}" if unequal else "weights are equal, a kernel raced"
    if not sound:
        raise SelfTestFailed(
            f"a saved and reloaded checkpoint gives other logits (they differ by {difference:.2e}; {why}); "
            "what it saves, or what it computes, could not be trusted. Please report it with the model's "
            "config.json and the name of the device"
        )
    return difference


def unequal_weights(model: Decoder, loaded: Decoder) -> list[str]:
    """Names of the weights that differ in this rank's shards."""
    theirs = dict(loaded.named_parameters())
    return [
        name
        for name, weight in model.named_parameters()
        if name not in theirs or not torch.equal(local(weight), local(theirs[name]))
    ]


def temporary_folder(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A hidden folder on the checkpoints' disk; after a kill the next start removes it."""
    return tempfile.TemporaryDirectory(prefix=f"{ASIDE}selftest-", dir=folder)


def check_micro_batches(model: Decoder, sequences: list[TrainSequence]) -> float:
    """Likelihood of the sampled tokens: as one micro-batch where prompts are shared, and as one per sequence."""
    longest = max(len(sequence.ids) for sequence in sequences)
    together = gradient(model, packed(model, sequences, sum(len(sequence.ids) for sequence in sequences)))
    apart = gradient(model, packed(model, sequences[::-1], longest))
    scale = max(together.norm().item(), 1e-12)
    difference = (together - apart).norm().item() / scale
    # Rounding to 16 bits makes 0.01 to 0.07 of it, samples that see each other about 1.
    limit = 1e-3 if model.dtype == torch.float32 else 0.2
    if not difference <= limit:
        raise SelfTestFailed(
            f"the gradient changes by {difference:.2e} (relative; at most {limit:.0e} is sound) when the same "
            "sequences are packed into other micro-batches; packed sequences see each other, or not their prompt"
        )
    return difference


def gradient(model: Decoder, batches: list[PackedBatch]) -> Tensor:
    """The gradient of the summed loss in the first block, in float32: errors of later blocks reach it."""
    with learning(model.blocks[0]) as parameters:
        total = [torch.zeros_like(parameter, dtype=torch.float32) for parameter in parameters]
        for batch in batches:
            logprobs_M, _ = token_logprobs(model, batch)
            shares = torch.autograd.grad(-(batch.weights_M * logprobs_M).sum(), parameters)
            total = [sum_ + share.float() for sum_, share in zip(total, shares, strict=True)]
    return torch.cat([gradient.flatten() for gradient in total])


@contextmanager
def learning(block: nn.Module) -> Iterator[list[nn.Parameter]]:
    """The trainable weights of a block; if all are frozen (mtp.train = "mtp"), they are trainable inside."""
    learns = [weight for weight in block.parameters() if weight.requires_grad]
    # corrections of routers have no gradient
    frozen = [] if learns else [w for w in block.parameters() if w not in corrections_of(block)]
    try:
        for weight in frozen:
            weight.requires_grad_(True)
        yield learns or frozen
    finally:
        for weight in frozen:
            weight.requires_grad_(False)


def packed(model: Decoder, sequences: list[TrainSequence], max_tokens: int) -> list[PackedBatch]:
    """The two samples of a prompt after one copy of it, where both fit."""
    weights = [1 / sum(sum(sequence.loss_mask) for sequence in sequences)] * len(sequences)
    return pack(sequences, weights, max_tokens=max_tokens, device=model.device, share_from=0.0)


def whole_batch(model: Decoder, sequences: list[TrainSequence]) -> PackedBatch:
    return packed(model, sequences, sum(len(sequence.ids) for sequence in sequences))[0]


def logits(model: Decoder, batch: PackedBatch) -> Tensor:
    return run_packed(model, batch, logits_at(batch.sources_M)).value
