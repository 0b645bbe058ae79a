"""The step `majority`: gold answers that a clear majority of a strong model's samples contradicts.

    [[step]]
    name = "majority"
    responses = "samples.jsonl"       # {"problem": "…", "responses": ["…", …]}, or with an id
    share = 0.75

Metadata: majority (the majority's answer, where it is another one) and majority_share. With `drop`, such problems
are dropped as outvoted. On a hard problem the majority may be wrong: look at some before you drop them.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.problems.columns import prompt_of
from foresail.curate.problems.kind import is_maths
from foresail.curate.problems.same_text import comparable, tokens_in
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.step import Outcome, StepFunction
from foresail.data.problems.problems import PROMPT_KEYS
from foresail.data.rows import ID_KEYS, read_rows
from foresail.maths.verdict import ballot, grade
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.part import Part

RESPONSE_KEYS = ("responses", "samples", "completions", "outputs", "generations", "solutions")


class Majority(Part):
    """Compares gold answers with the majority of a strong model's samples."""

    takes: ClassVar[Holds] = ("problems",)

    responses: str = Field(description="file of rows with an id or a prompt, and a list of responses")
    responses_key: str = Field("", description="column with the list; default: responses, samples, …")
    share: float = Field(0.75, gt=0.5, le=1, description="of all samples that must agree on another answer")
    least: int = Field(4, ge=2, description="samples of a problem; with fewer nothing is said")
    drop: bool = Field(False, description="drop outvoted problems; else they are named in the metadata")

    def files(self) -> tuple[str, ...]:
        return (self.responses,)

    def preflight(self) -> None:
        if not any(True for _ in read_samples(self)):
            raise ValueError(
                f"{self.responses} has no row with an id or a prompt and a list of responses; set responses_key"
            )

    def open(self) -> StepFunction:
        held = {
            name: zlib.compress(json.dumps(texts).encode(), 1)
            for names, texts in read_samples(self)
            for name in names
        }
        return Ballots(self, held)


def read_samples(settings: Majority) -> Iterator[tuple[list[str], list[str]]]:
    """Keys by which a row is looked up, and its responses."""
    for row in read_rows(Path(settings.responses)):
        keys = (settings.responses_key,) if settings.responses_key else RESPONSE_KEYS
        texts = next((value for key in keys if isinstance(value := reach(row.columns, key), list)), [])
        responses = [text for text in texts if isinstance(text, str)]
        names = [*names_of(row.columns)]
        if responses and names:
            yield names, responses


def names_of(columns: Mapping[str, Any]) -> Iterator[str]:
    if (name := next((columns[key] for key in ID_KEYS if columns.get(key) is not None), None)) is not None:
        yield f"id {name}"
    prompt = next((value for key in PROMPT_KEYS if isinstance(value := columns.get(key), str)), None)
    if prompt:
        yield by_text(prompt)


def by_text(prompt: str) -> str:
    return f"text {tokens_in(comparable(prompt))}"


@dataclass(frozen=True)
class Ballots:
    settings: Majority
    held: dict[str, bytes]

    def __call__(self, document: Document) -> Outcome:
        row = document.row
        assert row is not None
        if not is_maths(document.metadata, row):
            return document
        packed = self.held.get(f"id {document.id}") or self.held.get(by_text(prompt_of(row)))
        if packed is None:
            return document
        responses = json.loads(zlib.decompress(packed))
        if len(responses) < self.settings.least:
            return document
        winner, share = outvoting(responses, problem_of(document.id, row).answer)
        if winner is None or share < self.settings.share:
            return document
        if self.settings.drop:
            return Drop("outvoted", f"{share:.0%} of {len(responses)} samples say {winner[:100]}")
        return replace(
            document, metadata={**document.metadata, "majority": winner, "majority_share": round(share, 4)}
        )


def outvoting(responses: Sequence[str], answer: str) -> tuple[str | None, float]:
    """The majority's answer, and its share of the responses; None where it is the gold answer.

    Votes are counted by what they mean. A vote that the verifier calls right is one for the answer.
    """
    votes = Counter(vote for text in responses if (vote := vote_of(text)) is not None)
    if not votes:
        return None, 0.0
    winner, count = max(votes.items(), key=lambda item: (item[1], item[0]))
    chosen = next(text for text in responses if vote_of(text) == winner)
    is_right = grade(chosen, answer, accept="stated").status == "correct"
    return (None if is_right else winner), count / len(responses)


def vote_of(response: str) -> str | None:
    return ballot(response, accept="stated")
