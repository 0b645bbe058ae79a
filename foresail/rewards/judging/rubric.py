"""Rubrics: what a model is asked about a text, and which answers are valid.

load_rubric("education")       # shipped, of documents: fluency, education, reasoning, domain
load_rubric("quality")         # shipped, of answers: quality, correctness, harmlessness
load_rubric("task")            # shipped, of requests: task, task_detail
load_rubric("my-rubric.toml")  # your own: instructions, and low and high, or classes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, Strict

from foresail.recipe.reading.load import check_table, read_toml
from foresail.recipe.tables.part import CheckedPart

SHIPPED = Path(__file__).parent / "rubrics"


class RubricFile(CheckedPart):
    instructions: str = Field(description="what each level or class means")
    low: int | None = Field(None, description="lowest level")
    high: int | None = Field(None, description="highest level")
    classes: Annotated[tuple[str, ...], Strict(False)] = Field((), description="instead of levels")

    def mistakes(self) -> Iterator[str]:
        levels = self.low is not None and self.high is not None
        if levels == bool(self.classes):
            yield "write low and high, or classes"
        if self.low is not None and self.high is not None and self.low >= self.high:
            yield f"low {self.low} is not below high {self.high}"
        if len({*self.classes}) != len(self.classes) or len(self.classes) == 1:
            yield "classes must be two at least, each once"


class Rubric(RubricFile):
    """A file with its name, which becomes the name of the label."""

    name: str

    @property
    def answers(self) -> str:
        """As the model reads it."""
        if self.classes:
            return "one of " + ", ".join(f'"{name}"' for name in self.classes)
        return f"a whole number from {self.low} to {self.high}"

    @property
    def value_schema(self) -> dict[str, Any]:
        """Of an answer, as JSON schema."""
        if self.classes:
            return {"type": "string", "enum": [*self.classes]}
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    @property
    def choices(self) -> tuple[str, ...]:
        """All valid answers as words."""
        if self.classes:
            return self.classes
        assert self.low is not None and self.high is not None
        return tuple(str(level) for level in range(self.low, self.high + 1))

    def share(self, label: Any) -> float:
        """share(7) of levels 0 to 10 -> 0.7."""
        assert self.low is not None and self.high is not None
        return float((label - self.low) / (self.high - self.low))

    def read(self, value: Any) -> int | str | None:
        """read(4) -> 4; None is no valid answer: "4", 4.5, true, 17, an unknown class."""
        if self.classes:
            return value if isinstance(value, str) and value in self.classes else None
        assert self.low is not None and self.high is not None
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole and self.low <= value <= self.high else None


def own_files(names: Iterable[str]) -> list[str]:
    """Those of the rubrics that are files of a user's."""
    return [name for name in names if name.endswith(".toml")]


def load_rubric(name: str) -> Rubric:
    file = Path(name) if name.endswith(".toml") else SHIPPED / f"{name}.toml"
    if not file.is_file() and not name.endswith(".toml"):
        shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.toml")))
        raise ValueError(
            f"there is no rubric {name}; there are {shipped}, or name a file of yours, NAME.toml"
        )
    content = check_table(file, read_toml(file), {}, [], RubricFile)
    return Rubric(name=file.stem, **content.model_dump())


def load_rubrics(names: Iterable[str]) -> list[Rubric]:
    return distinct_names([load_rubric(name) for name in names])


def distinct_names(rubrics: list[Rubric]) -> list[Rubric]:
    if len({rubric.name for rubric in rubrics}) != len(rubrics):
        raise ValueError("two rubrics have the same name; rename the file of one")
    return rubrics
