"""Preference optimisation: the chosen answer becomes more likely, compared with the rejected one and a reference.

foresail dpo recipes/dpo-example.toml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from foresail.algorithms.preference_losses import preference_loss
from foresail.data.pairs import PairMixture, mix_pairs
from foresail.data.reader import Reader
from foresail.data.selection.supply import Supply, open_supply
from foresail.model.determinism import deterministic
from foresail.recipe.dpo import Dpo
from foresail.recipe.online_dpo import OnlineDpo
from foresail.records import TrainPair
from foresail.train.checkpoint import Progress
from foresail.train.dealing import describe_shares
from foresail.train.expert_load import balance_experts
from foresail.train.fingerprints import same_data
from foresail.train.launch import open_ranks, placed
from foresail.train.mtp import mtp_at
from foresail.train.pair_dealing import pack_pair_share
from foresail.train.pair_supply import draw_pairs, next_pairs, tell_left_out
from foresail.train.reference import (
    KeptLogprobs,
    Logprobs,
    check_same,
    name_reference,
    name_weights,
    open_reference,
    score_pairs,
    with_reference,
)
from foresail.train.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.step import named, token_logprobs, token_loss, train_step
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer

PER_PAIR = ("rewards/", "logps/", "dpo/")  # metrics that are means over pairs; others are over tokens
SCORED_AT_ONCE = 1024  # pairs, between two looks at the display


def run_dpo(recipe: Dpo, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        pairs, held_out = read_pairs(session, reader or Reader(session.tokenizer))
        supply = open_supply(pairs.datasets, [None] * len(pairs.datasets), recipe.data)
        pairs, held_out = prepare_reference(session, supply, pairs, held_out)
        if session.saved is None and held_out and recipe.eval_every:
            session.log(0, measure(session, held_out))
        for step in session.steps():
            watch = Stopwatch()
            if (next_step := next_pairs(session, supply)) is None:
                continue
            drawn, progress = next_step
            batch = [pairs.entries[index] for index in drawn]
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.everywhere(update, batch, rate)
            seen = sum(len(sequence.ids) for pair in batch for sequence in (pair.chosen, pair.rejected))
            metrics = {"train/loss": found.pop("loss"), **named("actor", found), "train/lr": rate}
            metrics |= {"train/tokens": seen, "perf/throughput": seen / watch.seconds["update"]}
            metrics |= describe_sources(pairs, drawn, recipe)
            if held_out and recipe.eval_every and step % recipe.eval_every == 0:
                with watch("eval"):
                    metrics |= measure(session, held_out)
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


def read_pairs(session: Session[Dpo], reader: Reader) -> tuple[PairMixture, dict[str, list[TrainPair]]]:
    """What is learned from, the same as when the run began, and what is measured on, by name."""
    recipe = session.recipe
    pairs = mix_pairs(recipe.data, reader.pairs, recipe.max_length)
    held_out = {
        source.label: mix_pairs([source], reader.pairs, recipe.max_length).entries for source in recipe.eval
    }
    tell_left_out(session, pairs)
    texts = (
        f"{sequence.ids} {sequence.loss_mask}\n"
        for pair in pairs.entries
        for sequence in (pair.chosen, pair.rejected)
    )
    named_sources = " and ".join(source.source for source in recipe.data)
    session.progress = same_data(session.progress, f"data {named_sources}", "answers", texts)
    return pairs, held_out


# The reference.


def prepare_reference(
    session: Session[Dpo], supply: Supply, pairs: PairMixture, held_out: dict[str, list[TrainPair]]
) -> tuple[PairMixture, dict[str, list[TrainPair]]]:
    """Pairs with what the reference says of them, where that is kept; else it is asked at every step."""
    recipe = session.recipe
    if not recipe.loss.needs_reference:
        return pairs, held_out
    if not recipe.reference.kept:
        checksum = session.everywhere(hold_reference)
        check_same(name_reference(recipe), session.progress.reference, checksum)
        session.progress = replace(session.progress, reference=checksum)
        return pairs, held_out
    numbers = sorted(numbers_to_come(supply, recipe, session.progress, len(pairs.entries)))
    wanted = [pairs.entries[number] for number in numbers]
    kept = keep_logprobs(session, [*wanted, *(pair for of_set in held_out.values() for pair in of_set)])
    entries = list(pairs.entries)
    for number, pair in zip(numbers, kept.fill(wanted), strict=True):
        entries[number] = pair
    return replace(pairs, entries=entries), {name: kept.fill(of_set) for name, of_set in held_out.items()}


def numbers_to_come(supply: Supply, recipe: Dpo, progress: Progress, num_pairs: int) -> set[int]:
    """Of the pairs that the rest of the run will draw: a short run needs not all of a large file."""
    found: set[int] = set()
    while progress.step < recipe.steps and len(found) < num_pairs:
        drawn, progress = draw_pairs(supply, recipe, progress)
        if len(drawn) < recipe.batch_size:
            break
        found.update(drawn)
    return found


def keep_logprobs(session: Session[Dpo], pairs: Sequence[TrainPair]) -> KeptLogprobs:
    """What the run's folder has of these pairs, and what is missing there, computed now by all ranks."""
    kept = KeptLogprobs.open(session.run.path, session.recipe)
    missing = kept.missing(pairs)
    if missing:
        checksum = session.everywhere(hold_reference)
        found: list[Logprobs] = []
        for start in range(0, len(missing), SCORED_AT_ONCE):
            part, share = missing[start : start + SCORED_AT_ONCE], start / len(missing)
            session.display.begin("reference", span=(share, share + len(part) / len(missing)))
            found += session.everywhere(ask_reference, part)
        session.everywhere(release_reference)
        kept = kept.add(missing, found, checksum)
        kept.write(session.run.path)
    return kept


def hold_reference(trainer: Trainer[Dpo]) -> str:
    """From now on, on every rank; and a checksum of it."""
    trainer.reference = open_reference(trainer)
    return name_weights(trainer.reference)


def release_reference(trainer: Trainer[Dpo]) -> None:
    trainer.reference = None


def ask_reference(trainer: Trainer[Dpo] | Trainer[OnlineDpo], pairs: Sequence[TrainPair]) -> list[Logprobs]:
    assert trainer.reference is not None
    return score_pairs(
        trainer.reference,
        pairs,
        micro_batch_tokens=trainer.recipe.micro_batch_tokens,
        device=trainer.device,
        world=trainer.world,
    )


def compared(trainer: Trainer[Dpo] | Trainer[OnlineDpo], pairs: Sequence[TrainPair]) -> Sequence[TrainPair]:
    """With what the reference says of them, where it is not known yet."""
    return pairs if trainer.reference is None else with_reference(pairs, ask_reference(trainer, pairs))


# One update, and what is measured.


def update(trainer: Trainer[Dpo], pairs: Sequence[TrainPair], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe = trainer.recipe
    pairs = compared(trainer, pairs)
    batches = [
        *pack_pair_share(pairs, trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device)
    ]
    balance_experts(trainer.policy.model, recipe.router, (trainer.progress.updates + 1) / recipe.steps)
    loss = partial(
        token_loss,
        loss=partial(preference_loss, settings=recipe.loss),
        mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps),
    )
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return dict(over_pairs(found, pairs)) | describe_shares([batches], trainer.world)


def over_pairs(found: Mapping[str, float], pairs: Sequence[TrainPair]) -> Iterator[tuple[str, float]]:
    """Sums over pairs, which a step divides by all tokens with a loss, as means over pairs."""
    num_tokens = sum(sum(pair.chosen.loss_mask) + sum(pair.rejected.loss_mask) for pair in pairs)
    for name, value in found.items():
        yield name, value * num_tokens / len(pairs) if name.startswith(PER_PAIR) else value


def measure(session: Session[Dpo], held_out: Mapping[str, Sequence[TrainPair]]) -> dict[str, float]:
    """{"val/loss/NAME": …, "val-core/NAME/acc/pairs": …}: how often the chosen answer has the higher reward."""
    found = {}
    for number, (name, pairs) in enumerate(held_out.items()):
        session.display.begin("eval", span=(number / len(held_out), (number + 1) / len(held_out)))
        loss, means = session.everywhere(measure_pairs, pairs)
        found[f"val/loss/{name}"] = loss
        found[f"val-core/{name}/acc/pairs"] = means["rewards/accuracies"]
        found[f"val/rewards/margins/{name}"] = means["rewards/margins"]
    return found


@torch.no_grad()
def measure_pairs(trainer: Trainer[Dpo], pairs: Sequence[TrainPair]) -> tuple[float, dict[str, float]]:
    """The loss, and metrics as means over the pairs; ranks compute a share each."""
    recipe, data = trainer.recipe, trainer.world.data
    sums: dict[str, torch.Tensor] = {}
    for batch in pack_pair_share(
        compared(trainer, pairs), trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device
    ):
        logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
        loss, terms = preference_loss(logprobs_M, batch, recipe.loss)
        for name, term in {"loss": loss, **terms}.items():
            sums[name] = sums.get(name, torch.zeros_like(term)) + term
    totals = {name: float(data.sum(value)) for name, value in sums.items()}
    return totals.pop("loss"), {name: total / len(pairs) for name, total in totals.items()}


def describe_sources(pairs: PairMixture, drawn: Sequence[int], recipe: Dpo) -> dict[str, float]:
    """Pairs of each source in the update, where there are several; and how many rows were left out."""
    found: dict[str, float] = {"data/dropped": sum(pairs.dropped.values())} if pairs.dropped else {}
    if pairs.unusable:
        found["data/unusable"] = sum(sum(by.values()) for by in pairs.unusable.values())
    if len(recipe.data) > 1:
        for source in recipe.data:
            found[f"train/pairs/{source.label}"] = sum(
                pairs.datasets[index] == source.label for index in drawn
            )
    return found
