"""What the race of `vs_trl.py` is run on: a checkpoint, problems and a reward that both sides get, and our recipe.

On a CPU the quickstart's arithmetic from its own cold start; on a GPU word problems from a real checkpoint, with
worked examples before each, as in `recipes/flagship/word-problems.toml`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from process import HERE

from foresail.data.problems.problems import load_problems
from foresail.quickstart.reasoning import (
    rl_recipe,
    sft_recipe,
    test_set,
    write_problems,
    write_tokenizer,
)
from foresail.quickstart.stages import train_stage
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables import parts
from foresail.records import Problem

FLAGSHIP = HERE.parents[1] / "recipes" / "flagship"


@dataclass(frozen=True, kw_only=True)
class Track:
    """`recipe` is ours as it ships, `problems` its data as TRL reads them, `reward` a function in TRL's shape."""

    start: Path
    recipe: Rl
    problems: Path
    reward: str
    held_out: parts.Problems
    micro_batches: int  # of TRL's updates

    @property
    def device(self) -> Literal["auto", "cpu", "cuda"]:
        return self.recipe.run.device


def arithmetic(home: Path) -> Track:
    """The quickstart's problems, tokenizer and SFT: a Hugging Face checkpoint that both sides load."""
    write_problems(home / "data", 0)
    tokenizer = write_tokenizer(home)
    start = train_stage(sft_recipe(home, 0, tokenizer.vocab_size)).checkpoint
    recipe = rl_recipe(home, 0, start)
    return Track(
        start=start,
        recipe=recipe.model_copy(update={"run": parts.Run(device="cpu")}),
        problems=write_rows(home / "problems.jsonl", load_problems(recipe.data[0])),
        reward=f"{HERE / 'reward_functions.py'}:boxed",
        held_out=test_set(home),
        micro_batches=1,
    )


def word_problems(home: Path, model: Path) -> Track:
    examples = f"examples={FLAGSHIP / 'word-problem-examples.jsonl'}"
    recipe = load_recipe(
        FLAGSHIP / "word-problems.toml",
        [f"model.path={model}", "run.device=cuda", f"data.{examples}", f"eval.{examples}"],
    )
    assert isinstance(recipe, Rl) and recipe.eval
    return Track(
        start=model,
        recipe=recipe,
        problems=write_rows(home / "problems.jsonl", load_problems(recipe.data[0])),
        reward=f"{HERE / 'reward_functions.py'}:last_number",
        held_out=recipe.eval[0],
        micro_batches=2,
    )


def write_rows(path: Path, problems: Sequence[Problem]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(to_row(problem)) + "\n" for problem in problems))
    return path


def to_row(problem: Problem) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.content} for message in problem.prompt]
    return {"id": problem.id, "prompt": messages, "answer": problem.answer}
