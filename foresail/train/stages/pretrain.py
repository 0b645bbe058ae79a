"""Pretraining: next-token loss on token shards, in stages of their own mixture, length, batch and learning rate.

foresail pretrain recipes/pretrain-small.toml

Rank 0 says which stretches of which documents an update has (`data/corpus`); every rank reads its own share of them
from the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.corpus.batches import count_targets, fitting_rows, row_batches
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.draw import CorpusSupply, draw_rows
from foresail.data.corpus.length_view import Source
from foresail.data.corpus.stage_sources import stage_sources
from foresail.data.corpus.windows import CorpusPlace, PackedRow, Windows
from foresail.evaluation.long_context import check_questions, long_context_metrics
from foresail.model.determinism import deterministic
from foresail.model.rotary_base import set_rotary
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import PretrainStage, Where, locate, rows_per_update
from foresail.recipe.tables.corpus import fingerprint
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import token_rate
from foresail.train.ranks.launch import open_ranks, placed
from foresail.train.session import Outcome, Session
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.corpus_loss import held_out_loss, plan_held_out
from foresail.train.update.flops import PeakMemory, pace_metrics, update_metrics
from foresail.train.update.split import balance_metrics
from foresail.train.update.step import prefixed, token_loss, train_step

Supplies = list[CorpusSupply]


def run_pretrain(recipe: Pretrain, *, resume: bool = False) -> Outcome:
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("opening the corpora")
        session.on_all_ranks(open_corpora)
        session.progress = fingerprint_corpora(session)
        if done := session.progress.position:
            # as the last update left it: there may be none before the model is saved again
            session.on_all_ranks(prepare, locate(recipe.stages, done - 1))
        held_out = plan_held_out(recipe, session.corpora)
        check_needles(session)
        stages = [stage_supplies(recipe, session.sources, number) for number in range(len(recipe.stages))]
        memory = PeakMemory(session.device)
        drawn = draw_update(recipe, stages, session.progress)
        for step in session.steps():
            watch = Stopwatch()
            report_stage(session, drawn)
            if not drawn.rows:
                session.display.note(
                    f"the corpora's epochs leave less than step {step} needs: the run ends here"
                )
                session.finish()
                continue
            where, rows, stage = drawn.where, drawn.rows, recipe.stages[drawn.where.stage]
            tokens = len(rows) * stage.length
            after = where.done + tokens
            rate = token_rate(recipe.stages, where, after, recipe.optimizer.lr)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.on_all_ranks(update, where, rows, rate)
                memory.note()
            progress = advance(session.progress, step, rows, drawn.places, tokens)
            metrics = {"train/loss": found.pop("loss"), **prefixed("actor", found), "train/lr": rate}
            tflop, seconds = found["perf/update_tflop"] / world.size, watch.seconds["update"]
            metrics |= pace_metrics(session.device, tflop, seconds) | memory.metrics()
            metrics |= row_metrics(rows, stage.length, where, seconds)
            metrics |= corpus_metrics(stages[where.stage], progress)
            with watch("rows"):  # of the next step; where there are none, this one is the last
                drawn = draw_update(recipe, stages, progress)
            last = recipe.steps if drawn.rows else step
            if is_measured(recipe, progress, last):
                session.display.begin("held-out loss")
                with watch("held_out"):
                    metrics |= session.on_all_ranks(held_out_loss, held_out)
            if (asked := recipe.long_context) is not None and asked.is_due(step, last):
                session.display.begin("long contexts")
                with watch("long_context"):
                    metrics |= long_context_metrics(
                        session.policy.model, session.tokenizer, asked, seed=recipe.run.seed
                    )
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


# On every rank.


def open_corpora(trainer: Trainer[Pretrain]) -> None:
    """Mapped by each rank for itself; all of them must have been made with the model's tokenizer."""
    own = fingerprint(trainer.tokenizer.files.definition)
    trainer.corpora = {
        corpus.source: Corpus(corpus.source, tokenizer=own) for _, corpus in trainer.recipe.corpora()
    }
    trainer.sources = [
        stage_sources(trainer.recipe, trainer.corpora, number) for number in range(len(trainer.recipe.stages))
    ]


def update(
    trainer: Trainer[Pretrain], where: Where, rows: Sequence[PackedRow], rate: float
) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe, stage = trainer.recipe, trainer.recipe.stages[where.stage]
    prepare(trainer, where)
    batches = [
        *row_batches(
            rows,
            {source.label: source.documents for source in trainer.sources[where.stage]},
            trainer.world,
            weight=1 / max(1, count_targets(rows, recipe.attention)),
            attention=recipe.attention,
            rows_at_once=fitting_rows(recipe.micro_batch_tokens, stage.length, trainer.world),
            device=trainer.device,
        )
    ]
    behind = recipe.behind(trainer.progress.position)
    balance_experts(trainer.policy.model, recipe.router, behind)
    loss = partial(token_loss, loss=sft_loss, mtp=mtp_at(recipe.mtp, behind))
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    work = update_metrics(
        [batches],
        trainer.policy.model.shape,
        micro_batch_tokens=recipe.micro_batch_tokens,
        frozen=recipe.lora is not None,
        world=trainer.world,
    )
    return found | work | balance_metrics([batches], trainer.world)


def prepare(trainer: Trainer[Pretrain], where: Where) -> None:
    """What the stages so far change in the model itself, before an update of the last of them."""
    stages = trainer.recipe.stages[: where.stage + 1]
    bases = [stage.rope_theta for stage in stages if stage.rope_theta is not None]
    set_rotary(
        trainer.policy.model,
        rope_theta=bases[-1] if bases else None,
        context=max(stage.length for stage in stages),
    )


# Where the run stands.


def stage_supplies(recipe: Pretrain, sources: Sequence[Sequence[Source]], number: int) -> Supplies:
    length, seed = recipe.stages[number].length, recipe.run.seed
    return [
        CorpusSupply(
            windows=Windows(source.label, source.documents, length=length, seed=seed),
            weight=source.weight,
            epochs=source.epochs,
        )
        for source in sources[number]
    ]


def fingerprint_corpora(session: Session[Pretrain]) -> Progress:
    texts = (f"{corpus.manifest.model_dump_json()}\n" for corpus in session.corpora.values())
    return fingerprint_data(session.progress, f"data {' and '.join(session.corpora)}", "corpora", texts)


class DrawnRows(NamedTuple):
    """An update's rows, none where the run ends, and where its corpora go on.

    `left` are tokens of windows that were packed for the stage before.
    """

    where: Where
    rows: list[PackedRow]
    places: dict[str, CorpusPlace]
    left: int


def draw_update(recipe: Pretrain, stages: Sequence[Supplies], progress: Progress) -> DrawnRows:
    """What comes after this progress, until the run's tokens, or its corpora's epochs, end."""
    where = locate(recipe.stages, progress.position)
    if where.stage == len(stages):
        return DrawnRows(where, [], {}, 0)
    stage = recipe.stages[where.stage]
    places, left = enter_stage(stages, where, read_places(progress))
    count = rows_per_update(stage, where.done)
    rows, places = draw_rows(stages[where.stage], places, first=where.done // stage.length, count=count)
    return DrawnRows(where, rows if len(rows) == count else [], places, left)


def report_stage(session: Session[Pretrain], drawn: DrawnRows) -> None:
    """At a stage's first update."""
    if drawn.where.done == 0:
        session.display.note(f"{session.recipe.stage_label(drawn.where.stage)} begins")
        if told := scaling_that_stays(session.recipe.stages[drawn.where.stage], session.policy.model.shape):
            session.display.note(told)
    if drawn.left:
        session.display.note(f"{drawn.left:,} tokens, packed for the stage before, wait for their next epoch")


def scaling_that_stays(stage: PretrainStage, shape: ModelShape) -> str:
    """What a longer stage, or one with another base, leaves as it is of positions that are not plain."""
    if (scaling := shape.rope_scaling) is None:
        return ""
    if stage.rope_theta is None and stage.length <= shape.max_context:
        return ""
    kind, base = f"{scaling.type} with factor {scaling.factor:g}", stage.rope_theta or shape.rope_theta
    return f"the checkpoint's rotary scaling, {kind}, stays; the base is {base:g}"


def enter_stage(
    stages: Sequence[Supplies], where: Where, places: Mapping[str, CorpusPlace]
) -> tuple[dict[str, CorpusPlace], int]:
    """Where its corpora go on, and the tokens in windows that no longer fit; in a stage's middle all stays."""
    after, left = dict(places), 0
    if where.done or not where.stage:
        return after, left
    goes_on = {(supply.name, supply.form) for supply in stages[where.stage]}
    for supply in stages[where.stage - 1]:
        if (supply.name, supply.form) not in goes_on:
            after[supply.name], tokens = supply.leave_window(after[supply.name])
            left += tokens
    return after, left


def read_places(progress: Progress) -> dict[str, CorpusPlace]:
    return {name: CorpusPlace(document, progress.rows[name]) for name, document in progress.places.items()}


def with_places(progress: Progress, places: Mapping[str, CorpusPlace]) -> Progress:
    return replace(
        progress,
        places={name: place.document for name, place in places.items()},
        rows={name: place.row for name, place in places.items()},
    )


def advance(
    progress: Progress, step: int, rows: Sequence[PackedRow], places: Mapping[str, CorpusPlace], tokens: int
) -> Progress:
    seen = dict(progress.tokens)
    for row in rows:
        seen[row.source] = seen.get(row.source, 0) + row.num_tokens
    progress = with_places(progress, places)
    return replace(progress, step=step, updates=step, position=progress.position + tokens, tokens=seen)


# What is logged.


def row_metrics(rows: Sequence[PackedRow], length: int, where: Where, seconds: float) -> dict[str, float]:
    """Of an update. `cut`: stretches that are not the beginning of their document."""
    tokens = sum(row.num_tokens for row in rows)
    found: dict[str, float] = {"train/stage": where.stage + 1, "train/tokens": tokens}
    found["perf/throughput"] = tokens / seconds
    found["data/packing_waste"] = 1 - tokens / (len(rows) * length)
    found["data/cut"] = sum(stretch.start > 0 for row in rows for stretch in row.stretches)
    for name in dict.fromkeys(row.source for row in rows):
        found[f"train/tokens/{name}"] = sum(row.num_tokens for row in rows if row.source == name)
    return found


def corpus_metrics(supplies: Supplies, progress: Progress) -> dict[str, float]:
    """Since the run began."""
    places = read_places(progress)
    found: dict[str, float] = {"data/tokens_seen": sum(progress.tokens.values())}
    for supply in supplies:
        found[f"data/tokens_seen/{supply.name}"] = progress.tokens.get(supply.name, 0)
        found[f"data/epochs/{supply.name}"] = supply.epochs_done(places[supply.name])
    return found


def is_measured(recipe: Pretrain, progress: Progress, last: int) -> bool:
    often = recipe.eval_every and progress.step % recipe.eval_every == 0
    ends_stage = not locate(recipe.stages, progress.position).done
    return bool(recipe.held_out) and bool(often or ends_stage or progress.step == last)


def check_needles(session: Session[Pretrain]) -> None:
    """Questions that cannot be asked are told before the first step."""
    if (asked := session.recipe.long_context) is not None:
        context = max(session.recipe.max_length, session.policy.model.shape.max_context)
        check_questions(session.tokenizer, asked, context=context, seed=session.recipe.run.seed)
