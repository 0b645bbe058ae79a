"""Supervised fine-tuning: next-token loss on the assistant's words, packed without padding; in stages, or in one.

foresail sft recipes/sft-example.toml
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import sft_loss
from foresail.data.mixtures.mixture import describe_chats
from foresail.data.mixtures.reader import Reader
from foresail.data.selection.launch_order import WHOLE
from foresail.data.selection.supply import draw
from foresail.recipe.stages.sft import Sft
from foresail.records import TrainSequence
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.stages.sft_stages import SftStages, StageData, mean_losses
from foresail.train.stages.supervised import StepData, learn, run_supervised
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.held_out import held_out_loss
from foresail.train.update.neftune import noisy_loss
from foresail.train.update.split import pack_share
from foresail.train.update.step import LossOfBatch, token_loss


def run_sft(recipe: Sft, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader` may have read the data already."""

    def open_data(session: Session[Sft]) -> ChatSupply:
        return ChatSupply(session, open_stages(session, reader or Reader(session.tokenizer)))

    return run_supervised(recipe, open_data, update, resume=resume)


def open_stages(session: Session[Sft], reader: Reader) -> SftStages:
    """The data of all stages, which must be what the run began with; notes say what was left out."""
    recipe = session.recipe
    stages = SftStages(recipe, reader)
    for note in reader.notes.values():
        session.display.note(note)
    for chats, phase in zip(stages.own, recipe.phases, strict=True):
        for line in describe_chats(chats, phase.max_length):
            session.display.note(line, style="yellow")
    named_sources = " and ".join(dict.fromkeys(log.source for _, log in recipe.logs()))
    session.progress = fingerprint_data(
        session.progress, f"data {named_sources}", "conversations", stages.texts()
    )
    stages.restore(session.start)
    session.also_save.append(stages.save)
    return stages


class ChatSupply:
    """The conversations of the stage under way; after its last step, those of the next stage."""

    def __init__(self, session: Session[Sft], stages: SftStages) -> None:
        self.session, self.stages = session, stages
        self.begin_stage()

    def begin_stage(self) -> None:
        """Open a stage's data at its first step, or when a resumed run is inside it."""
        session, stages, number = self.session, self.stages, self.session.progress.stage
        if (candidates := stages.candidates(number)) is not None:
            session.display.begin("finding the best conversations")
            stages.choose(number, session.on_all_ranks(mean_losses, candidates))
        if session.recipe.stages and session.progress.step == session.progress.began:
            chosen = stages.chosen.get(number)
            more = "" if chosen is None else f", with {len(chosen):,} of an earlier stage"
            session.display.note(f"{session.recipe.stage_label(number)} begins{more}")
        self.data, self.seed = stages.data(number), stages.seed(number)
        self.supply = self.data.supply()

    def draw(self, step: int) -> StepData | None:
        progress, phase = self.session.progress, self.session.recipe.phases[self.session.progress.stage]
        own_step = step - progress.began
        numbers, places = self.next_numbers(progress)
        if own_step > phase.steps or len(numbers) < phase.batch_size:
            self.leave_stage(early=own_step <= phase.steps)
            return None
        self.numbers = numbers
        sequences = [self.data.chats.entries[number] for number in numbers]
        return StepData(
            arguments=(sequences,),
            rate=learning_rate(own_step, phase.steps, phase.optimizer),
            tokens=sum(len(sequence.ids) for sequence in sequences),
            progress=replace(
                progress,
                step=step,
                updates=step,
                position=progress.position + phase.batch_size,
                places={name: place for name, place in places.items() if name != WHOLE},
            ),
        )

    def next_numbers(self, progress: Progress) -> tuple[list[int], dict[str, int]]:
        """Numbers of the next conversations, fewer than a batch at the end; and the sources' places after them."""
        phase = self.session.recipe.phases[progress.stage]
        strata = self.supply.strata(None, position=progress.position, places=progress.places)
        return draw(strata, phase.batch_size, seed=self.seed, position=progress.position)

    def leave_stage(self, *, early: bool) -> None:
        """Go to the next stage, or end the run. A stage ends early when its sources' epochs do."""
        session, recipe, progress = self.session, self.session.recipe, self.session.progress
        is_last = progress.stage + 1 == len(recipe.phases)
        if early:
            what = "the run" if is_last else recipe.stage_label(progress.stage)
            session.display.note(
                f"data.epochs leaves less than step {progress.step + 1} needs: {what} ends here"
            )
        if is_last:
            session.finish()
            return
        session.progress = replace(
            progress, stage=progress.stage + 1, began=progress.step, position=0, places={}
        )
        self.begin_stage()

    def measure(self, data: StepData, metrics: Mapping[str, float], watch: Stopwatch) -> dict[str, float]:
        recipe, progress = self.session.recipe, data.progress
        figures = source_metrics(self.data, self.numbers)
        if recipe.stages:
            figures["train/stage"] = progress.stage + 1
        if recipe.measures and self.is_due(progress):
            self.session.display.begin("held-out loss")
            with watch("held_out"):
                figures |= self.session.on_all_ranks(held_out_losses, self.stages.held_out)
        return figures

    def is_due(self, progress: Progress) -> bool:
        """Whether to measure: every `evaluation.every` steps, and at the end of each stage or of its epochs."""
        recipe, phase = self.session.recipe, self.session.recipe.phases[progress.stage]
        if recipe.eval_every and progress.step % recipe.eval_every == 0:
            return True
        if progress.step - progress.began == phase.steps or progress.step == recipe.steps:
            return True
        return len(self.next_numbers(progress)[0]) < phase.batch_size


# On every rank.


def update(trainer: Trainer[Sft], sequences: Sequence[TrainSequence], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe, num_tokens = trainer.recipe, [sum(sequence.loss_mask) for sequence in sequences]
    batches = [
        *pack_share(
            sequences,
            token_weights(num_tokens, "token-mean", recipe.max_length),
            trainer.world,
            max_tokens=recipe.micro_batch_tokens,
            device=trainer.device,
        )
    ]
    loss: LossOfBatch = partial(
        token_loss, loss=sft_loss, mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps)
    )
    if recipe.neftune_alpha is not None:
        loss = partial(
            noisy_loss,
            loss=loss,
            alpha=recipe.neftune_alpha,
            seed=recipe.run.seed,
            step=trainer.progress.step + 1,
        )
    return learn(trainer, batches, loss, rate=rate, done=(trainer.progress.updates + 1) / recipe.steps)


def held_out_losses(
    trainer: Trainer[Sft], held_out: Mapping[str, Sequence[TrainSequence]]
) -> dict[str, float]:
    """{"val/loss/maths": 0.71}: by source."""
    losses = {}
    for name, sequences in held_out.items():
        batches = pack_share(
            sequences,
            [1.0] * len(sequences),
            trainer.world,
            max_tokens=trainer.recipe.micro_batch_tokens,
            device=trainer.device,
        )
        losses[f"val/loss/{name}"] = held_out_loss(trainer, batches)
    return losses


# What is logged.


def source_metrics(data: StageData, drawn: Sequence[int]) -> dict[str, float]:
    """Tokens of each source in the update, where there are several; and how many conversations were left out."""
    chats = data.chats
    left_out = {
        "data/dropped": chats.dropped,
        "data/split": chats.split,
        "data/dropped_turns": chats.lost_turns,
        "data/without_loss": chats.without_loss,
    }
    metrics: dict[str, float] = {name: sum(counts.values()) for name, counts in left_out.items() if counts}
    if len(data.sources) > 1:
        for source in data.sources:
            of_source = [index for index in drawn if chats.datasets[index] == source.label]
            metrics[f"train/tokens/{source.label}"] = sum(len(chats.entries[i].ids) for i in of_source)
    return metrics
