"""Runs documents through steps, and says of each what became of it.

    chain.run([document]) -> [Result(kept=[document], dropped=[])]

A built-in step that fails on a document drops it as "failed"; a user's own step that fails stops the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foresail.curate.asking.cache import AnswerCache
from foresail.curate.document import Document, Drop
from foresail.curate.named_step import NamedStep
from foresail.curate.step import Outcome, StepFunction
from foresail.curate.user_step import is_user_code

BatchFunction = Callable[[Sequence[Document]], Sequence[Outcome]]
DROPPED_AT_FIRST = 50  # so many failures and no success: the step is broken, not the documents


@dataclass(frozen=True, slots=True)
class Dropped:
    """`document` is as it came to the step."""

    step: str
    reason: str
    detail: str
    document: Document


@dataclass(slots=True)
class Result:
    """What became of one document; it may have become several."""

    kept: list[Document] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    flow: list[tuple[int, int]] = field(default_factory=list)  # documents and bytes that leave each step

    def add(self, other: Result) -> None:
        """What steps did with one of the documents that this one became. `flow` here begins with one entry more."""
        self.kept += other.kept
        self.dropped += other.dropped
        for place, (documents, size) in enumerate(other.flow, start=1):
            if place == len(self.flow):
                self.flow.append((0, 0))
            before = self.flow[place]
            self.flow[place] = (before[0] + documents, before[1] + size)


class StepFailed(ValueError):
    """A step cannot work on any document."""


class Chain:
    """Opened steps. `before_step` is called with each step's label, and the bytes that come to it."""

    def __init__(self, steps: Sequence[NamedStep], cache: AnswerCache | None = None) -> None:
        """`cache` is for the answers of steps that ask a model."""
        cache = cache or AnswerCache()
        self.steps = [(step.label, open_step(step, cache)) for step in steps]
        self.asks = any(step.asks for step in steps)
        self.batch_size = max((batch_size(step) for step in steps), default=1)

    def run(
        self,
        documents: Sequence[Document],
        before_step: Callable[[str, int], None] = lambda label, size: None,
    ) -> list[Result]:
        results = [Result() for _ in documents]
        alive = [(number, document, size_of(document)) for number, document in enumerate(documents)]
        for label, function in self.steps:
            if not alive:
                break
            before_step(label, sum(size for _, _, size in alive))
            outcomes = function([document for _, document, _ in alive])
            leaving = []
            for (number, before, size), outcome in zip(alive, outcomes, strict=True):
                for document in settle(outcome, label, before, results[number]):
                    same = document.text is before.text and document.content is before.content
                    leaving.append((number, document, size if same else size_of(document)))
            alive = leaving
            note_flow(results, alive)
        for number, document, _ in alive:
            results[number].kept.append(document)
        return results


def note_flow(results: Sequence[Result], leaving: Sequence[tuple[int, Document, int]]) -> None:
    for result in results:
        result.flow.append((0, 0))
    for number, _, size in leaving:
        documents, total = results[number].flow[-1]
        results[number].flow[-1] = (documents + 1, total + size)


def size_of(document: Document) -> int:
    """Bytes, also of text that cannot be encoded."""
    return len(document.content) + len(document.text.encode("utf-8", "replace"))


def settle(outcome: Outcome, label: str, before: Document, result: Result) -> Sequence[Document]:
    """The documents that go on; a drop is noted in `result`."""
    if isinstance(outcome, Document):
        return (outcome,)
    if isinstance(outcome, Drop):
        outcome = [outcome]
    if isinstance(outcome, Sequence) and all(isinstance(entry, Document | Drop) for entry in outcome):
        if not outcome:
            result.dropped.append(Dropped(label, "nothing_left", "", before))
        for drop in outcome:
            if isinstance(drop, Drop):
                result.dropped.append(Dropped(label, drop.reason, drop.detail, drop.document or before))
        return [document for document in outcome if isinstance(document, Document)]
    raise StepFailed(
        f"step {label} returned {type(outcome).__name__} for {before.id}; return a Document, a list of them, "
        "or Drop"
    )


def batch_size(step: NamedStep) -> int:
    in_batches = step.asks or hasattr(step.settings, "open_batch")
    return int(getattr(step.settings, "batch_size", 1)) if in_batches else 1


def open_step(step: NamedStep, cache: AnswerCache) -> BatchFunction:
    if step.asks:
        asking: BatchFunction = step.settings.open_asking(cache)
        return asking
    if hasattr(step.settings, "open_batch"):
        opened: BatchFunction = step.settings.open_batch()
        return opened
    function: StepFunction = step.settings.open()
    if is_user_code(step.name):
        return lambda documents: [call_user_step(function, document, step.label) for document in documents]
    return Guard(function, step.label)


def call_user_step(function: StepFunction, document: Document, label: str) -> Outcome:
    try:
        return function(document)
    except Exception as error:
        place = trace_end(error)
        raise StepFailed(
            f"step {label} failed on {document.id}: {type(error).__name__}: {error}{place}; correct the function, "
            "then run the same command again"
        ) from error


def trace_end(error: Exception) -> str:
    """The user's line that failed: " (clean.py, line 7)"."""
    trace: Any = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"


class Guard:
    """Calls a built-in step; a failure drops the document, unless no document has ever succeeded."""

    def __init__(self, function: StepFunction, label: str) -> None:
        self.function, self.label = function, label
        self.successes = self.failures = 0

    def __call__(self, documents: Sequence[Document]) -> list[Outcome]:
        return [self.call(document) for document in documents]

    def call(self, document: Document) -> Outcome:
        try:
            outcome = self.function(document)
        except MemoryError:
            return Drop("out_of_memory", f"in step {self.label}")
        except (OSError, ImportError):
            raise
        except Exception as error:
            self.failures += 1
            if self.failures >= DROPPED_AT_FIRST and not self.successes:
                raise StepFailed(
                    f"step {self.label} failed on each of the first {self.failures} documents, on {document.id} "
                    f"with {type(error).__name__}: {error}; check its settings"
                ) from error
            return Drop("failed", f"{type(error).__name__}: {error}"[:200])
        self.successes += 1
        return outcome
