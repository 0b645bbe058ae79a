"""The sides of the comparison with TRL: what Foresail's SFT reads, that each side is timed alone, and which
losses are compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pairs
import pytest
import sft
from load import arithmetic_tokenizer
from process import run_steps
from sft_ours import GivenRows, read_rows
from turns import Turns

from foresail.data.mixtures.mixture import mix_conversations
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.sft import Sft

SIDE = """
import sys, time
print('{"versions": {}}', flush=True)
print('{"ready": 0}', flush=True)
sys.stdin.readline()
print('{"step": 1}', flush=True)
print('{"ready": 1}', flush=True)
sys.stdin.readline()
print('{"step": 2}', flush=True)
print('{"step": 3}', flush=True)
time.sleep(60)  # what a side saves at its end
"""


def test_our_sft_learns_from_the_ids_that_were_written_and_looks_for_no_file(tmp_path: Path) -> None:
    rows = sft.random_rows(5, 64, middle=20, most=40)
    recipe = sft.our_recipe(tmp_path, tmp_path, "cpu", "float32", batch_size=2, steps=2, most=40)
    sft.our_command(tmp_path, recipe, rows)
    read = load_recipe(tmp_path / "recipe.toml")
    assert isinstance(read, Sft)
    reader = GivenRows(arithmetic_tokenizer(64), given=read_rows(tmp_path / "conversations.json"))
    entries = mix_conversations(read.data, reader, read.max_length).entries
    assert [{"ids": entry.ids, "loss_mask": entry.loss_mask} for entry in entries] == rows


@pytest.mark.parametrize("together", [1, 2, 5])
def test_no_side_starts_or_is_timed_while_another_is_timed(together: int) -> None:
    turns, told = Turns(together), []

    def run(side: int) -> None:
        with turns.start() as place:
            told.append(("start", side))
            place.wait(0)
            told.append(("first step", side))
            place.wait(1)
            told.append(("timed", side))
            told.append(("end", side))

    turns.map(run, range(5))
    timed = [place for place, (what, _) in enumerate(told) if what == "timed"]
    assert len(timed) == 5
    assert all(told[place + 1] == ("end", told[place][1]) for place in timed)


def test_a_side_that_fails_before_it_is_warm_holds_up_no_other() -> None:
    turns, timed = Turns(2), []

    def run(side: int) -> None:
        with turns.start() as place:
            place.wait(0)
            if side:
                place.wait(1)
                timed.append(side)

    turns.map(run, range(3))
    assert sorted(timed) == [1, 2]


def test_a_side_goes_on_after_its_first_step_and_is_ended_after_its_last(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SIDE]
    found = run_steps(command, tmp_path / "log", steps=3, seconds=30.0, turns=Turns())
    assert [line["step"] for line in found] == [1, 2, 3]


def test_losses_of_equal_steps_are_compared_whatever_the_rounds_and_the_first_step_is_not_timed() -> None:
    def steps(losses: list[float], seconds: float) -> list[dict[str, object]]:
        return [
            {
                "step": n,
                "loss": loss,
                "seconds": {"step": 9.0 if n == 1 else seconds, "cpu": 1.0},
                "peak_gb": 1.0,
            }
            for n, loss in enumerate(losses, start=1)
        ]

    ours, theirs = steps([0.5, 0.25, 0.125], 1.0), steps([0.5, 0.75], 3.0)
    figures = pairs.compare("two rounds", {"ours": ours + ours, "theirs": theirs + theirs})
    assert figures["loss_differences"] == [0.0, 0.5]
    assert (figures["ratio"], figures["ours"]["steps"]) == (3.0, 4)
