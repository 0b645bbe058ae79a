"""A whole new stage, as an example: preference pairs (DPO), with a recipe type and a function of its own and a row
in the table of stages. Nothing else knows of it, and it checks, trains, logs, saves, stops and resumes.

In the package the recipe would be recipe/pairs.py and the function train/pairs.py.

Legend: M tokens with a loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from pydantic import Field
from tiny_world import write_lines
from torch.nn.functional import logsigmoid

from foresail import cli
from foresail.data.made.arithmetic import make_problems
from foresail.data.packing import pack
from foresail.data.selection.order import problem_at
from foresail.model.decoder import Decoder
from foresail.model.packed import score_tokens, token_logprobs
from foresail.recipe.estimates.memory import VALUE_BYTES, Dtype, ExtraMemory
from foresail.recipe.reading.describe import describe
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import STAGES, StageEntry, stage_function
from foresail.recipe.tables import parts
from foresail.recipe.tables.cluster import Cluster
from foresail.recipe.tables.router import OptionalRouter
from foresail.records import Message, PackedBatch, TrainSequence
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.checkpoints.fingerprints import fingerprint_data, fingerprint_reference
from foresail.train.learner import Learner
from foresail.train.optim.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.starting_point import load_model_and_tokenizer
from foresail.train.update.step import BatchLoss, prefixed, train_step

# The recipe.


class Pairs(Stage):
    """Of two responses to a prompt, the chosen one becomes more likely than it was, compared with the other."""

    unit = "responses"

    stage: Literal["pairs"] = Field("pairs", description="preference pairs")
    run: parts.Run = parts.Run(name="pairs")
    model: parts.Model
    lora: parts.OptionalLora = None
    router: OptionalRouter = None
    data: str = Field(description="JSONL with prompt, chosen and rejected")
    steps: int = Field(gt=0, description="optimiser updates")
    pairs_per_step: int = Field(8, gt=0, description="pairs per update")
    beta: float = Field(0.1, gt=0, description="how far the model may go from where it began")
    max_length: int = Field(64, gt=1, description="tokens of a prompt and its response")
    micro_batch_tokens: parts.MicroBatchTokens = 128
    recompute: parts.Recompute = False
    optimizer: parts.Optimizer = parts.Optimizer(lr=1e-3)
    checkpoints: parts.Checkpoints = parts.Checkpoints(every=2)
    cluster: Cluster = Cluster()

    @property
    def samples_per_step(self) -> int:
        return 2 * self.pairs_per_step

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.micro_batch_tokens < 2 * self.max_length:
            yield "a pair must fit a micro-batch; set micro_batch_tokens to twice max_length or more"

    def sources(self) -> dict[str, str]:
        return {"data": self.data}

    def extra_memory(self, shape: ModelShape, dtype: Dtype) -> ExtraMemory:
        return ExtraMemory(reference=shape.num_parameters * VALUE_BYTES[dtype])


# The function.


def run_pairs(recipe: Pairs, *, resume: bool = False) -> Outcome:
    with Session(recipe, resume=resume) as session:
        pairs = encode_pairs(recipe.data, session.tokenizer)
        texts = (f"{chosen.ids} {rejected.ids}\n" for chosen, rejected in pairs)
        session.progress = fingerprint_data(session.progress, f"data {recipe.data}", "pairs", texts)
        reference = open_reference(session, recipe)
        batch_loss = partial(
            pair_loss, reference=reference.model, beta=recipe.beta, num_pairs=recipe.pairs_per_step
        )
        for step in session.steps():
            first = session.progress.position
            places = range(first, first + recipe.pairs_per_step)
            chosen = [pairs[problem_at(place, len(pairs), recipe.run.seed)] for place in places]
            batches = [
                batch
                for pair in chosen
                for batch in pack(
                    pair, [1.0, 1.0], max_tokens=recipe.micro_batch_tokens, device=session.device
                )
            ]
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            metrics = train_step(session.policy, batches, batch_loss, learning_rate=rate)
            progress = replace(session.progress, step=step, updates=step, position=places.stop)
            session.end_step(progress, prefixed("pairs", metrics | {"lr": rate}))
    return session.outcome


def open_reference(session: Session, recipe: Pairs) -> Learner[Decoder]:
    """The model as it was: a learner without an optimiser."""
    model, _ = load_model_and_tokenizer(
        recipe.model, seed=recipe.run.seed, device=session.device, max_length=recipe.max_length
    )
    session.progress = fingerprint_reference(session.progress, recipe.model.path, model)
    reference = session.learners["reference"] = Learner(name="reference", model=model.requires_grad_(False))
    return reference


def encode_pairs(path: str, tokenizer: Tokenizer) -> list[list[TrainSequence]]:
    """A chosen response counts for the pair, the other against it: advantages of 1 and -1."""
    pairs = []
    for number, line in enumerate(Path(path).read_text().splitlines()):
        row, pair = json.loads(line), []
        for key, sign in (("chosen", 1.0), ("rejected", -1.0)):
            messages = [
                Message(role="user", content=row["prompt"]),
                Message(role="assistant", content=row[key]),
            ]
            ids, mask = tokenizer.encode_conversation(messages)
            name = f"pair {number}, {key}"
            pair.append(TrainSequence(name=name, ids=ids, loss_mask=mask, advantages=[sign] * len(ids)))
        pairs.append(pair)
    return pairs


def pair_loss(
    model: Decoder, batch: PackedBatch, *, reference: Decoder, beta: float, num_pairs: int
) -> BatchLoss:
    """-log sigmoid(beta (how much likelier the chosen one became - how much likelier the rejected one did))."""
    (logprobs_M, entropy_M), *side = score_tokens(model, batch)
    with torch.no_grad():
        reference_M, _ = token_logprobs(reference, batch)
    assert batch.advantages_M is not None
    margin = beta * (batch.advantages_M * (logprobs_M - reference_M)).sum()
    return BatchLoss(-logsigmoid(margin) / num_pairs, {"entropy": entropy_M.sum()}, *side)


# The row in the table, and that the stage works.


@pytest.fixture
def recipe_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_checkpoint: Path) -> Path:
    """Right digits are chosen, wrong ones rejected."""
    row = StageEntry(recipe=f"{__name__}:Pairs", function=f"{__name__}:run_pairs", help="Preference pairs.")
    monkeypatch.setitem(STAGES, "pairs", row)
    rows = [
        {
            "prompt": problem.prompt[-1].content,
            "chosen": rf"\boxed{{{problem.answer}}}",
            "rejected": rf"\boxed{{{(int(problem.answer) + 1) % 10}}}",
        }
        for problem in make_problems(40, seed=1, steps=(2, 2))
    ]
    data = write_lines(tmp_path / "pairs.jsonl", rows)
    file = tmp_path / "pairs.toml"
    file.write_text(
        f"""stage = "pairs"
data = "{data}"
steps = 6
max_length = 24
run = {{root = "{tmp_path}", device = "cpu"}}
model = {{path = "{tiny_checkpoint}", dtype = "float32"}}
"""
    )
    return file


def losses(run: Path) -> list[float]:
    return [record["pairs/loss"] for record in RunDirectory(run).read_metrics()]


def test_a_new_stage_checks_trains_stops_and_resumes(
    recipe_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = preflight(load_recipe(recipe_file))
    assert not found.refusals and "reference" in describe(found)

    whole = stage_function("pairs")(load_recipe(recipe_file))
    assert whole.finished and read_progress(whole.checkpoint).position == 48
    found_losses = losses(whole.run)
    assert found_losses[0] == pytest.approx(
        0.6931, abs=1e-4
    )  # before the first update no response is likelier
    assert found_losses[-1] < found_losses[0]

    end_step = Session.end_step

    def ask_to_stop(session: Session, progress: Any, metrics: Any) -> None:
        end_step(session, progress, metrics)
        session.stop.requested = progress.step == 3

    with monkeypatch.context() as patch:
        patch.setattr(Session, "end_step", ask_to_stop)
        stopped = stage_function("pairs")(load_recipe(recipe_file, ["run.name=stopped"]))
    assert not stopped.finished and len(losses(stopped.run)) == 3
    cli.resume(stopped.run)
    assert losses(stopped.run) == found_losses
    ends = [run / "checkpoints" / "step_6" / "model.safetensors" for run in (whole.run, stopped.run)]
    assert ends[0].read_bytes() == ends[1].read_bytes()


def test_its_own_mistakes_are_told(recipe_file: Path) -> None:
    with pytest.raises(ValueError, match="a pair must fit a micro-batch"):
        load_recipe(recipe_file, ["micro_batch_tokens=30"])
