"""`foresail data grade-difficulty`: the rates it measures, and that no kill costs or changes any of them."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import CommandLine
from tiny_world import MAX_NEW, write_lines

from foresail.data.problems.difficulty import find_levels
from foresail.data.problems.problems import load_problems
from foresail.engine.build import build_engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.evaluation.difficulty import GradedProblem, describe_levels, grade_difficulty
from foresail.evaluation.difficulty_plot import plot_pass_rates
from foresail.maths import verdict as maths
from foresail.model.hf import load_model, save_model
from foresail.recipe.tables.parts import Engine, Problems, Sampling
from foresail.records import Message, RunStopped
from foresail.tokenizer.tokenizer import Tokenizer

SOURCE = "arithmetic:count=40,steps=2"
SAMPLING = Sampling(max_new_tokens=MAX_NEW)


def grade(checkpoint: Path, output: Path, source: str = SOURCE, **changes: Any) -> list[GradedProblem]:
    given: dict[str, Any] = {"num_samples": 8, "output": output, "seed": 3, "device": "cpu"}
    given |= {"note": lambda text: None}
    return grade_difficulty(checkpoint, Problems(source=source), SAMPLING, **given | changes)


def test_every_rate_is_that_of_the_samples_taken_alone(tiny_checkpoint: Path, tmp_path: Path):
    graded = grade(tiny_checkpoint, tmp_path / "out")
    model = load_model(tiny_checkpoint, dtype=torch.float32, device="cpu")
    tokenizer = Tokenizer.load(tiny_checkpoint)
    engine = build_engine(model, Engine(max_running=1), max_length=32)
    problems = load_problems(Problems(source=SOURCE))
    for problem, line in list(zip(problems, graded, strict=True))[:10]:
        lengths, right = [], 0
        for number in range(8):
            request = Request(
                id="alone",
                prompt=tuple(
                    tokenizer.encode_prompt([Message(role="user", content=problem.prompt[-1].content)])
                ),
                key=noise_key(3, -2, problem.id, number),
                sampling=SAMPLING,
                stop_ids=tokenizer.eos_ids,
            )
            (completion,) = engine.generate([request])
            text = tokenizer.decode(completion.ids, skip_special_tokens=True)
            right += maths.grade(text, problem.answer, accept="stated").status == "correct"
            lengths.append(len(completion.ids))
        assert (line.id, line.right, line.judged) == (problem.id, right, 8)
        assert line.mean_length == sum(lengths) / 8 and line.pass_rate == right / 8
    assert [line.level for line in graded] == find_levels([line.pass_rate for line in graded])
    assert len({line.level for line in graded}) >= 3, "a world where all levels are alike tests nothing"
    written = [json.loads(line) for line in (tmp_path / "out" / "difficulty.jsonl").read_text().splitlines()]
    assert written == [vars(line) for line in graded]


def test_stopped_anywhere_it_ends_the_same_and_samples_nothing_twice(tiny_checkpoint: Path, tmp_path: Path):
    """As if killed after each number of problems, some of them amid a line."""
    grade(tiny_checkpoint, tmp_path / "whole", batch_invariant=True)
    whole = (tmp_path / "whole" / "difficulty.jsonl").read_bytes()
    lines = (tmp_path / "whole" / "measured.jsonl").read_bytes().splitlines(keepends=True)
    for done in (0, 1, 17, 39, 40):
        folder = tmp_path / f"after {done}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / "difficulty.jsonl").unlink()
        torn = b'{"id": "arith'[: done % 13] if done < 40 else b""
        (folder / "measured.jsonl").write_bytes(b"".join(lines[:done]) + torn)
        notes: list[str] = []
        grade(tiny_checkpoint, folder, batch_invariant=True, note=notes.append)
        assert (folder / "difficulty.jsonl").read_bytes() == whole
        measured = (folder / "measured.jsonl").read_bytes().splitlines(keepends=True)
        assert measured[:done] == lines[:done] and sorted(measured) == sorted(lines)
        assert (f"{done} of 40 problems are measured already" in notes) == (done > 0)


def test_killed_as_a_process_it_goes_on(foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path):
    words = ["data", "grade-difficulty", tiny_checkpoint, "--data", "arithmetic:count=60,steps=2"]
    words += ["--max-new-tokens", MAX_NEW, "--device", "cpu", "--batch-invariant", "--output"]
    finished = foresail.run(*words, "whole")
    assert finished.code == 0, finished.err
    assert 'data.difficulty = "whole/difficulty.jsonl"' in finished.out and "level" in finished.out
    waits, kills = random.Random(0), 0
    while kills < 1:  # on a busy machine it may get away before it is killed
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        kills = kill_again_and_again(foresail, words, tmp_path / "again", waits)
    for file in ("difficulty.jsonl", "settings.json"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def kill_again_and_again(foresail: CommandLine, words: list[Any], folder: Path, waits: random.Random) -> int:
    """How often it was killed before it came to its end."""
    measured, kills = folder / "measured.jsonl", 0
    while not (folder / "difficulty.jsonl").exists():
        running, before = foresail.start(*words, folder.name), count_lines(measured)
        if kills < 2:
            running.until(lambda before=before: count_lines(measured) > before)  # type: ignore[misc]
            time.sleep(waits.uniform(0, 0.02))
            running.send(signal.SIGKILL)
        ended = running.wait()
        assert ended.code in (0, -signal.SIGKILL), ended.err
        kills += ended.code != 0
    return kills


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_more_problems_may_come_later_and_changed_ones_are_measured_anew(
    tiny_checkpoint: Path, tmp_path: Path
):
    rows = [{"id": f"p{n}", "prompt": f"{1 + n % 9} +{1 + n // 9} -2", "answer": "4"} for n in range(12)]
    data = write_lines(tmp_path / "data.jsonl", rows[:6])
    grade(tiny_checkpoint, tmp_path / "out", str(data))
    before = (tmp_path / "out" / "measured.jsonl").read_text().splitlines()
    rows[2] = {**rows[2], "answer": "9"}
    write_lines(data, rows)
    graded = grade(tiny_checkpoint, tmp_path / "out", str(data))
    after = (tmp_path / "out" / "measured.jsonl").read_text().splitlines()
    assert [line.id for line in graded] == [f"p{n}" for n in range(12)]
    assert after[:6] == before
    assert {json.loads(line)["id"] for line in after[6:]} == {"p2", *(f"p{n}" for n in range(6, 12))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_samples": 4}, "samples 8 there, 4 now"),
        ({"seed": 4}, "seed 3 there, 4 now"),
        ({"grader": "exact"}, "grader math there, exact now"),
    ],
)
def test_rates_measured_otherwise_are_not_mixed(
    tiny_checkpoint: Path, tmp_path: Path, changes: dict[str, Any], message: str
):
    few = "arithmetic:count=2,steps=2"
    grade(tiny_checkpoint, tmp_path / "out", few)
    with pytest.raises(ValueError, match=f"{message}.*choose another --output, or remove"):
        grade(tiny_checkpoint, tmp_path / "out", few, **changes)


def test_other_weights_are_told_apart_even_in_the_same_place(tiny_checkpoint: Path, tmp_path: Path):
    place, few = tmp_path / "model", "arithmetic:count=2,steps=2"
    shutil.copytree(tiny_checkpoint, place)
    grade(place, tmp_path / "out", few)
    shutil.move(place, tmp_path / "elsewhere")
    grade(tmp_path / "elsewhere", tmp_path / "out", few)  # moved, but the same
    model = load_model(tiny_checkpoint, dtype=torch.float32, device="cpu")
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1e-3
    (tmp_path / "elsewhere" / "model.safetensors").unlink()
    save_model(model, tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"measured otherwise \(weights"):
        grade(tmp_path / "elsewhere", tmp_path / "out", few)


def test_a_grader_that_fails_on_some_problems_leaves_them_without_a_level(
    tiny_checkpoint: Path, tmp_path: Path
):
    (tmp_path / "rewards.py").write_text(
        "def score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    if ground_truth in FAILS:\n        raise KeyError('gold')\n"
        "    return float(ground_truth in solution_str)\n"
        "FAILS = '0123'\n"
    )
    grader = f"{tmp_path / 'rewards.py'}:score"
    graded = grade(tiny_checkpoint, tmp_path / "out", grader=grader)
    answers = {problem.id: problem.answer for problem in load_problems(Problems(source=SOURCE))}
    for line in graded:
        failed = answers[line.id] in "0123"
        assert (line.level is None, line.pass_rate is None, line.judged) == (
            failed,
            failed,
            0 if failed else 8,
        )
    assert describe_levels(graded)[-1].endswith(f"not gradable {sum(line.level is None for line in graded)}")
    # nothing was written of them: mended, they are measured
    mended = (tmp_path / "rewards.py").read_text().replace("'0123'", "''")
    (tmp_path / "rewards.py").write_text(mended)
    again = grade(tiny_checkpoint, tmp_path / "out", grader=grader)
    assert all(line.level is not None for line in again)


def test_a_grader_that_always_fails_stops_with_its_first_words(tiny_checkpoint: Path, tmp_path: Path):
    (tmp_path / "rewards.py").write_text(
        "def score(data_source, solution_str, ground_truth, extra_info=None):\n    raise KeyError('gold')\n"
    )
    with pytest.raises(
        RunStopped, match=r"no verdict of 3 problems held; the first: crashed: .*gold.*call again"
    ):
        grade(
            tiny_checkpoint,
            tmp_path / "out",
            "arithmetic:count=3,steps=2",
            grader=f"{tmp_path / 'rewards.py'}:score",
        )


def test_the_picture_has_every_problem_once():
    lines = [
        GradedProblem(id=str(n), pass_rate=rate, right=0, judged=8, mean_length=1.0, level=level)
        for n, (rate, level) in enumerate([(1.0, 1), (1.0, 1), (0.5, 3), (0.5, 4), (0.0, 5)])
    ]
    (axes,) = plot_pass_rates(lines).axes
    bars = [
        (round(bar.get_x() + bar.get_width() / 2, 3), bar.get_y(), bar.get_height()) for bar in axes.patches
    ]
    assert sorted(bars) == [(0.0, 0, 1), (0.5, 0, 1), (0.5, 1, 1), (1.0, 0, 2)]
