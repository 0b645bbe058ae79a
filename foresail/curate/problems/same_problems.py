"""The step `same_problems`: one of each problem, across all sources, and no problem with two answers.

[[step]]
name = "same_problems"

Two problems are one if they have the same numbers and operators, nearly the same words (MinHash), and answers that
mean the same. The first stays: put the source that you trust most first. Problems that differ in a number both
stay. Texts that are equal but for their layout and have different answers are all dropped, as conflicting_answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.candidates import settle_candidates
from foresail.curate.deduplicate.collected import Collected, key_of, names_of
from foresail.curate.deduplicate.minhash import Minhash
from foresail.curate.deduplicate.verdicts import own_numbers
from foresail.curate.document import Document, Drop
from foresail.curate.problems.columns import prompt_of
from foresail.curate.problems.kind import is_maths
from foresail.curate.problems.same_text import comparable, numbers_in, operators_in, spelt_alike, tokens_in
from foresail.curate.rows.holds import Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.step import Outcome
from foresail.judge.programs.guesses import entry_of
from foresail.judge.programs.rows import read_task
from foresail.maths.verdict import grade

LONGEST_ANSWER = 500
CODE = "\0"  # before what stands in place of an answer


class SameProblems(Minhash):
    """Drops problems that an earlier one is, and those whose copies disagree on the answer."""

    takes: ClassVar[Holds] = ("problems",)

    threshold: float = Field(
        0.7, gt=0, lt=1, description="Jaccard similarity of the words from which two are one"
    )
    ngram: int = Field(3, ge=1, le=100, description="words of a shingle")
    conflicting: bool = Field(True, description="drop problems whose copies have another answer")

    def columns(self, batch: Sequence[Document]) -> dict[str, Array]:
        texts = [comparable(document.text) for document in batch]
        signatures_nP, shingles_n = self.signatures(texts)
        # only problems with equal numbers and operators can share a key
        marks = [
            key_of(f"{numbers_in(text)}|{operators_in(text)}".encode("utf-8", "replace"))[0] for text in texts
        ]
        keys_bn = self.keys(signatures_nP, shingles_n)
        keys_bn = np.where(keys_bn == 0, keys_bn, mixed(keys_bn, np.array(marks, np.uint64)))
        answers = [answer_of(document).encode("utf-8", "replace") for document in batch]
        exact = [
            key_of(tokens_in(spelt_alike(document.text)).encode("utf-8", "replace"))[0] for document in batch
        ]
        return {
            "keys": keys_bn,
            "signatures": signatures_nP,
            "exact": np.array(exact, np.uint64),
            "answers": np.frombuffer(b"".join(answers), np.uint8),
            "answer_ends": np.cumsum([len(answer) for answer in answers], dtype=np.int64),
        }

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        collected = Collected.open(features)
        first_n = own_numbers(scratch / "first", collected.documents)
        least = int(np.ceil(self.threshold * self.permutations))
        figures = settle_candidates(
            collected, self.groups(collected, scratch / "groups"), least, first_n, scratch
        )
        groups = Groups.of(collected, first_n)
        same, conflicts = groups.decide(self.conflicting)
        names = groups.names
        start = 0
        for sizes, path in zip(collected.block_sizes, decisions, strict=True):
            count = sum(sizes)
            lines = [decision(number, same, conflicts, names) for number in range(start, start + count)]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            start += count
        return figures | {
            "documents": collected.documents,
            "removed": len(same),
            "conflicting": len(conflicts),
        }

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        lines = [json.loads(line) for line in decisions.read_text(encoding="utf-8").splitlines()]

        def apply(number: int, document: Document) -> Outcome:
            reason, detail = lines[number]
            return Drop(reason, detail) if reason else document

        return apply


def mixed(keys_bn: Array, marks_n: Array) -> Array:
    """One key for each pair of both, never 0."""
    return (keys_bn ^ (marks_n * np.uint64(0x9E3779B97F4A7C15))) | np.uint64(1)


def answer_of(document: Document) -> str:
    """Of maths; of a code problem what its tests call, as it may be spelt otherwise."""
    assert document.row is not None
    if not is_maths(document.metadata, document.row):
        return CODE + called_in(document.row)
    return problem_of(document.id, document.row).answer[:LONGEST_ANSWER]


def called_in(row: Mapping[str, Any]) -> str:
    """called_in({"test_list": ["assert Sum_all([1]) == 1"]}) -> "sumall"; empty where programs read and print."""
    try:
        entry = entry_of(read_task({**row, "prompt": prompt_of(row)}))
    except ValueError:
        return ""
    return (entry or "").lower().replace("_", "")


def decision(
    number: int, same: dict[int, int], conflicts: dict[int, int], names: dict[int, str]
) -> tuple[str, str]:
    if number in conflicts:
        return "conflicting_answers", f"another answer than {names[conflicts[number]]}"
    return ("same_problem", f"repeats {names[same[number]]}") if number in same else ("", "")


class Groups:
    """Problems of like words, by the first of them; of all in a group the name, the answer and the exact text."""

    def __init__(self) -> None:
        self.members: dict[int, list[int]] = {}
        self.names: dict[int, str] = {}
        self.answers: dict[int, str] = {}
        self.exact: dict[int, int] = {}

    @classmethod
    def of(cls, collected: Collected, first_n: Array) -> Groups:
        groups = cls()
        numbers = np.arange(len(first_n))
        repeated = numbers[first_n != numbers]
        for number in repeated.tolist():
            first = int(first_n[number])
            groups.members.setdefault(first, [first]).append(number)
        needed = {number for members in groups.members.values() for number in members}
        for start, block in collected.blocks():
            content, begin = block["answers"].tobytes(), 0
            ends = block["answer_ends"].tolist()
            for offset, (name, end) in enumerate(zip(names_of(block), ends, strict=True)):
                if start + offset in needed:
                    groups.names[start + offset] = name.decode("utf-8", "replace")
                    groups.answers[start + offset] = content[begin:end].decode("utf-8", "replace")
                    groups.exact[start + offset] = int(block["exact"][offset])
                begin = end
        return groups

    def decide(self, conflicting: bool) -> tuple[dict[int, int], dict[int, int]]:
        """Which problem each one repeats, and with which it disagrees."""
        same: dict[int, int] = {}
        conflicts: dict[int, int] = {}
        for members in self.members.values():
            firsts: list[int] = []  # of each answer
            for number in sorted(members):
                equal = next((first for first in firsts if self.agree(first, number)), None)
                if equal is not None:
                    same[number] = equal
                    continue
                for first in firsts if conflicting else ():
                    if self.exact[first] == self.exact[number] and not self.answers[number].startswith(CODE):
                        conflicts[number] = first
                        conflicts.setdefault(first, number)
                firsts.append(number)
        return same, conflicts

    def agree(self, first: int, number: int) -> bool:
        one, other = self.answers[first], self.answers[number]
        if one == other or one.startswith(CODE) or other.startswith(CODE):
            return one == other
        return all(
            grade(rf"\boxed{{{answer}}}", gold).status == "correct"
            for answer, gold in ((one, other), (other, one))
        )
