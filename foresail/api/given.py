"""Writes objects of a script into the run folder, so that the run can be resumed without the script.

given/data.jsonl     rows, from a list, an iterable, a DataFrame or a `datasets.Dataset`
given/model/         a model and its tokenizer as a Hugging Face directory
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from foresail.api.result import Result
from foresail.runlog.atomic import write_atomically
from foresail.runlog.directory import RunDirectory


class GivenFiles:
    """Names files first and writes them in `write`, so that a recipe with mistakes leaves no files."""

    def __init__(self, run: Path) -> None:
        self.folder = run / "given"
        self.writes: list[Callable[[], object]] = []

    def write(self) -> None:
        if self.writes:
            self.folder.mkdir(parents=True, exist_ok=True)
        for write in self.writes:
            write()

    def add_rows(self, rows: Iterable[Mapping[str, Any]], name: str) -> str:
        """add_rows([{"prompt": "2+2?", "answer": "4"}], "data") -> "runs/rl/given/data.jsonl"."""
        if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame iterates over its columns
            rows = rows.to_dict("records")
        if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
            raise ValueError(f"{name} is a {type(rows).__name__}; give a file, or rows as dicts")
        path = self.folder / f"{name}.jsonl"
        self.writes.append(lambda: write_atomically(path, lambda temporary: write_rows(temporary, rows)))
        return str(path)

    def add_model(self, model: Any, tokenizer: Any) -> dict[str, Any]:
        """The recipe's [model] for a path, a run, a result, a table, or a model with its tokenizer as objects."""
        if isinstance(model, Mapping):
            table = dict(model)
        elif isinstance(model, Result):
            table = {"path": str(model.checkpoint)}
        elif isinstance(model, str | Path):
            run = RunDirectory(Path(model))  # of which the best checkpoint is meant, or the newest
            table = {"path": str(Result(model).checkpoint if run.recipe_path.is_file() else model)}
        elif hasattr(model, "save_pretrained"):
            if tokenizer is None:
                raise ValueError("a model given as an object needs its tokenizer: pass tokenizer=… beside it")
            table = {"path": self.add_object(model, "model")}
        else:
            raise ValueError(
                f"model is a {type(model).__name__}; give a path, a run, a result of foresail's, or a model of "
                "transformers with its tokenizer"
            )
        return table if tokenizer is None else table | {"tokenizer": self.add_tokenizer(tokenizer)}

    def add_tokenizer(self, tokenizer: Any) -> str:
        if isinstance(tokenizer, str | Path):
            return str(tokenizer)
        if not hasattr(tokenizer, "save_pretrained"):
            raise ValueError(
                f"tokenizer is a {type(tokenizer).__name__}; give its folder, or one of transformers'"
            )
        return self.add_object(tokenizer, "tokenizer")

    def add_object(self, thing: Any, name: str) -> str:
        """A model or tokenizer of transformers'."""
        path = self.folder / name
        self.writes.append(lambda: thing.save_pretrained(path))
        return str(path)


# Rows.


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    number = 0
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, Mapping):
                raise ValueError(
                    f"row {number} of the data is a {type(row).__name__}; give rows as dicts, such as "
                    '{"prompt": "2+2?", "answer": "4"}'
                )
            file.write(encode_row(row, number) + "\n")
    if not number:
        raise ValueError("the data has no rows; give at least one, or a path")


def encode_row(row: Mapping[str, Any], number: int) -> str:
    try:
        return json.dumps(dict(row), ensure_ascii=False, default=to_json)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"row {number} of the data: {error}; leave that column out, or make it text"
        ) from None


def to_json(value: Any) -> Any:
    """Arrays, tensors and their numbers as JSON; other types are an error."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be written to a file")
