"""What the lab-scale proofs rest on: the start that is looked for, and the results that are read instead of run."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab_seeds import every_seed, lab_parser, size_of
from online_dpo import best_run
from reward_model import MEAN, REWARD_SIZES, summarise
from word_lab import SIZES, Lab, first_reaching, largest_of, misread


def test_the_first_try_that_reaches_the_goal_is_taken() -> None:
    asked: list[int] = []
    accuracy = {100: 0.2, 140: 0.36, 200: 0.9}

    def measure(steps: int) -> float:
        asked.append(steps)
        return accuracy[steps]

    assert first_reaching(0.35, tuple(accuracy), measure) == 140
    assert asked == [100, 140]


def test_a_start_that_is_far_too_good_is_looked_for_between_the_last_two_tries() -> None:
    accuracy = {100: 0.1, 200: 0.9, 150: 0.2, 175: 0.5}
    assert first_reaching(0.35, (100, 200), accuracy.__getitem__) == 175
    assert first_reaching(0.35, (100,), {100: 0.9, 50: 0.6, 25: 0.1}.__getitem__) == 50


def test_the_last_try_stands_where_none_reaches_the_goal() -> None:
    assert first_reaching(0.35, (100, 200), {100: 0.1, 200: 0.2}.__getitem__) == 200


def test_no_problem_is_in_two_parts_of_a_lab(tmp_path: Path) -> None:
    lab = Lab(folder=tmp_path, size=SIZES["tiny"], device="cpu", seed=0)
    lab.prepare()
    parts = [lab.path(name).read_text().splitlines() for name in ("shown", "tried-on", "asked", "held-out")]
    prompts = [[json.loads(line)["prompt"] for line in lines] for lines in parts]
    assert [len(part) for part in prompts] == [1600, 40, 100, 20]
    assert len({prompt for part in prompts for prompt in part}) == 1760


def test_a_size_may_have_small_numbers_only_and_misread_problems(tmp_path: Path) -> None:
    size = replace(SIZES["tiny"], shown=10, asked=10, largest=5, misread=0.6)
    lab = Lab(folder=tmp_path, size=size, device="cpu", seed=0)
    problems = lab.make(40)
    assert len(problems) == 40 and max(map(largest_of, problems)) == 5
    assert lab.make(10) == problems[:10]
    lab.prepare()
    shown = [json.loads(line)["completion"] for line in lab.path("shown").read_text().splitlines()]
    wrong = [text != problem.extra["solution"] for text, problem in zip(shown, problems, strict=False)]
    assert wrong == [True] * 6 + [False] * 4
    for problem in problems:
        said, answer = misread(problem)["completion"].removesuffix(".").split(". The answer is ")
        left, right = said.split(" = ")
        assert int(answer) == int(right) == eval(left) and said not in problem.extra["solution"]


def options(output: Path, *words: str) -> Namespace:
    return lab_parser(None, SIZES, "runs/lab").parse_args(["--output", str(output), *words])


def test_a_finished_seed_is_read_and_not_run_again(tmp_path: Path) -> None:
    ran: list[int] = []

    def measure(folder: Path, seed: int) -> dict[str, Any]:
        folder.mkdir(parents=True)
        ran.append(seed)
        return {"accuracy": 0.1 * seed}

    every_seed(options(tmp_path, "--first-seed", "1"), measure)
    found = every_seed(options(tmp_path, "--seeds", "3", "--device", "cuda"), measure)
    assert ran == [1, 0, 2]
    assert [seed["accuracy"] for seed in found] == [0.0, 0.1, 0.2]
    with pytest.raises(SystemExit, match="other settings"):
        every_seed(options(tmp_path, "--set", "goal=0.3"), measure)


def test_sizes_are_changed_by_name(tmp_path: Path) -> None:
    size = size_of(options(tmp_path, "--set", "goal=0.3", "asked=50", "--tries", "10", "20"), REWARD_SIZES)
    assert (size.goal, size.asked, size.tries) == (0.3, 50, (10, 20))
    with pytest.raises(SystemExit, match="gaol"):
        size_of(options(tmp_path, "--set", "gaol=0.3"), SIZES)


def test_an_arm_counts_at_its_best_rate() -> None:
    means = {"online 3e-05": 0.6, "online 0.0001": 0.7, "online-renewed 3e-05": 0.8}
    assert best_run("online", means) == "online 0.0001"


def test_the_model_that_pairs_choose_need_not_be_the_best_of_16() -> None:
    def figures(best_of: float, pairs: float) -> dict[str, Any]:
        row = {name: {"value": best_of} for name in ("best_of", "majority", "pass", "lead")}
        return {"pairs": pairs, "ece": 0.0, "n": {"1": row, "16": row}}

    found = summarise({"model 0": figures(0.6, 0.9), "model 1": figures(0.7, 0.8), MEAN: figures(0.65, 0.9)})
    best = found["best-of-16"]
    assert (best["best one"], best["chosen by pairs"], best["singles"]) == (0.7, 0.6, pytest.approx(0.65))
