"""The grader and the output folder of an evaluation."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from foresail.recipe.reward_function import Function, check_function
from foresail.recipe.tables.reward import Reward


def choose_grader(grader: Function | Reward) -> Reward:
    """The settings of a grader by its name alone, or an error that says what is wrong with it."""
    if isinstance(grader, Reward):
        return grader
    try:
        reward = Reward(grader=grader)
    except ValidationError as error:
        raise ValueError(str(error.errors()[0]["ctx"]["error"])) from None
    is_named = reward.own_function and isinstance(grader, str)
    if is_named and (wrong := next(check_function("--grader", str(grader)), None)):
        raise ValueError(wrong)
    return reward


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made: {error.strerror}; choose another output folder") from error


def default_output(folder: str, checkpoint: Path, source: str) -> Path:
    """default_output("eval", "runs/a/rl/checkpoints/step_3", "test.jsonl") -> runs/eval/a-rl-step_3-on-test"""
    names = [name for name in checkpoint.parts if name not in ("/", ".", "..", "runs", "checkpoints")]
    data = source if ":" in source else Path(source).name.split(".")[0]
    readable = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in data)
    return Path("runs") / folder / f"{'-'.join(names[-3:])}-on-{readable}"
