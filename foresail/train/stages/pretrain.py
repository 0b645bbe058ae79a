"""Pretraining: next-token loss on token shards, in stages of their own mixture, length, batch and learning rate.

foresail pretrain recipes/pretrain-small.toml

Rank 0 plans the rows of an update, stretches of documents (`data/corpus`); every rank reads its share of them from
the shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.corpus.batches import count_targets, fitting_rows, row_batches
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.stage_sources import stage_sources
from foresail.data.corpus.windows import PackedRow
from foresail.evaluation.long_context import check_questions, long_context_metrics
from foresail.model.rotary_base import set_rotary
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import PretrainStage, Where, locate
from foresail.recipe.tables.corpus import fingerprint
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import token_rate
from foresail.train.session import Outcome, Session
from foresail.train.stages.corpus_held_out import held_out_losses, plan_held_out
from foresail.train.stages.corpus_stages import (
    DrawnRows,
    Supplies,
    advance,
    draw_update,
    read_places,
    stage_supplies,
)
from foresail.train.stages.supervised import StepData, learn, run_supervised
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.flops import PeakMemory, pace_metrics, update_metrics
from foresail.train.update.step import token_loss


def run_pretrain(recipe: Pretrain, *, resume: bool = False) -> Outcome:
    return run_supervised(recipe, StagedCorpora, update, resume=resume)


class StagedCorpora:
    """The corpora of the stage under way; the rows of the next step are drawn once a step is done."""

    def __init__(self, session: Session[Pretrain]) -> None:
        recipe, self.session = session.recipe, session
        session.on_all_ranks(open_corpora)
        session.progress = fingerprint_corpora(session)
        if done := session.progress.position:
            # as the last update left it: there may be none before the model is saved again
            session.on_all_ranks(prepare, locate(recipe.stages, done - 1))
        self.held_out = plan_held_out(recipe, session.corpora)
        check_needles(session)
        self.supplies = [
            stage_supplies(recipe, session.sources, number) for number in range(len(recipe.stages))
        ]
        self.memory = PeakMemory(session.device)
        self.next = draw_update(recipe, self.supplies, session.progress)

    def draw(self, step: int) -> StepData | None:
        session, recipe, where = self.session, self.session.recipe, self.next.where
        self.drawn = drawn = self.next
        report_stage(session, drawn)
        if not drawn.rows:
            session.display.note(f"the corpora's epochs leave less than step {step} needs: the run ends here")
            session.finish()
            return None
        stage = recipe.stages[where.stage]
        places = len(drawn.rows) * stage.length
        return StepData(
            arguments=(where, drawn.rows),
            rate=token_rate(recipe.stages, where, where.done + places, recipe.optimizer.lr),
            tokens=sum(row.num_tokens for row in drawn.rows),
            progress=advance(session.progress, step, drawn.rows, drawn.places, places),
        )

    def measure(self, data: StepData, metrics: Mapping[str, float], watch: Stopwatch) -> dict[str, float]:
        session, recipe, (where, rows, *_) = self.session, self.session.recipe, self.drawn
        self.memory.note()
        tflop, seconds = metrics["perf/update_tflop"] / session.world.size, watch.seconds["update"]
        figures = pace_metrics(session.device, tflop, seconds) | self.memory.metrics()
        figures |= row_metrics(rows, recipe.stages[where.stage].length, where)
        figures |= corpus_metrics(self.supplies[where.stage], data.progress)
        with watch("rows"):  # of the next step; where there are none, this one is the last
            self.next = draw_update(recipe, self.supplies, data.progress)
        step = data.progress.step
        last = recipe.steps if self.next.rows else step
        if is_measured(recipe, data.progress, last):
            session.display.begin("held-out loss")
            with watch("held_out"):
                figures |= session.on_all_ranks(held_out_losses, self.held_out)
        if (questions := recipe.long_context) is not None and questions.is_due(step, last):
            session.display.begin("long contexts")
            with watch("long_context"):
                figures |= long_context_metrics(
                    session.policy.model, session.tokenizer, questions, seed=recipe.run.seed
                )
        return figures


# On every rank.


def open_corpora(trainer: Trainer[Pretrain]) -> None:
    """Each rank memory-maps the corpora, which must have been made with the model's tokenizer."""
    tokenizer_fingerprint = fingerprint(trainer.tokenizer.files.definition)
    trainer.corpora = {
        corpus.source: Corpus(corpus.source, tokenizer=tokenizer_fingerprint)
        for _, corpus in trainer.recipe.corpora()
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
    done = recipe.behind(trainer.progress.position)
    loss = partial(token_loss, loss=sft_loss, mtp=mtp_at(recipe.mtp, done))
    metrics = learn(trainer, batches, loss, rate=rate, done=done)
    return metrics | update_metrics(
        [batches],
        trainer.policy.model.shape,
        micro_batch_tokens=recipe.micro_batch_tokens,
        frozen=recipe.lora is not None,
        world=trainer.world,
    )


def prepare(trainer: Trainer[Pretrain], where: Where) -> None:
    """Set the rotary base and context of this stage; a stage without a base keeps that of the one before."""
    stages = trainer.recipe.stages[: where.stage + 1]
    bases = [stage.rope_theta for stage in stages if stage.rope_theta is not None]
    set_rotary(
        trainer.policy.model,
        rope_theta=bases[-1] if bases else None,
        context=max(stage.length for stage in stages),
    )


# Notes on the data.


def fingerprint_corpora(session: Session[Pretrain]) -> Progress:
    texts = (f"{corpus.manifest.model_dump_json()}\n" for corpus in session.corpora.values())
    return fingerprint_data(session.progress, f"data {' and '.join(session.corpora)}", "corpora", texts)


def report_stage(session: Session[Pretrain], drawn: DrawnRows) -> None:
    """At a stage's first update."""
    if drawn.where.done == 0:
        session.display.note(f"{session.recipe.stage_label(drawn.where.stage)} begins")
        if scaling := scaling_that_stays(
            session.recipe.stages[drawn.where.stage], session.policy.model.shape
        ):
            session.display.note(scaling)
    if drawn.left:
        session.display.note(f"{drawn.left:,} tokens, packed for the stage before, wait for their next epoch")


def scaling_that_stays(stage: PretrainStage, shape: ModelShape) -> str:
    """A note on the model's rotary scaling, which a longer stage or another base does not change."""
    if (scaling := shape.rope_scaling) is None:
        return ""
    if stage.rope_theta is None and stage.length <= shape.max_context:
        return ""
    kind, base = f"{scaling.type} with factor {scaling.factor:g}", stage.rope_theta or shape.rope_theta
    return f"the checkpoint's rotary scaling, {kind}, stays; the base is {base:g}"


# What is logged.


def row_metrics(rows: Sequence[PackedRow], length: int, where: Where) -> dict[str, float]:
    """Metrics of an update. `cut`: stretches that do not begin a document."""
    tokens = sum(row.num_tokens for row in rows)
    figures = {
        "train/stage": where.stage + 1,
        "data/packing_waste": 1 - tokens / (len(rows) * length),
        "data/cut": sum(stretch.start > 0 for row in rows for stretch in row.stretches),
    }
    for name in dict.fromkeys(row.source for row in rows):
        figures[f"train/tokens/{name}"] = sum(row.num_tokens for row in rows if row.source == name)
    return figures


def corpus_metrics(supplies: Supplies, progress: Progress) -> dict[str, float]:
    """Since the run began."""
    places = read_places(progress)
    figures: dict[str, float] = {"data/tokens_seen": sum(progress.tokens.values())}
    for supply in supplies:
        figures[f"data/tokens_seen/{supply.name}"] = progress.tokens.get(supply.name, 0)
        figures[f"data/epochs/{supply.name}"] = supply.epochs_done(places[supply.name])
    return figures


def is_measured(recipe: Pretrain, progress: Progress, last: int) -> bool:
    """Every so often, at the end of each stage, and after the last step."""
    often = recipe.eval_every and progress.step % recipe.eval_every == 0
    ends_stage = not locate(recipe.stages, progress.position).done
    return bool(recipe.held_out) and bool(often or ends_stage or progress.step == last)


def check_needles(session: Session[Pretrain]) -> None:
    """Questions that do not fit are an error before the first step."""
    if (questions := session.recipe.long_context) is not None:
        context = max(session.recipe.max_length, session.policy.model.shape.max_context)
        check_questions(session.tokenizer, questions, context=context, seed=session.recipe.run.seed)
