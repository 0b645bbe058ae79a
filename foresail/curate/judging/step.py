"""The step `judge`: a model scores each document, conversation or problem by rubrics.

    [[step]]
    name = "judge"
    rubrics = [{name = "education", least = 3}, {name = "domain", only = ["maths", "science"]}]

    [step.answerer]
    endpoint = "http://localhost:8000/v1"
    model = "qwen3-8b"

Metadata gets the label of each rubric. Of a conversation the last answer is judged, in its context. Dropped:
low_education, other_domain; where the judge gave no verdict no_json, wrong_names, wrong_value, endless_thinking,
refused; nothing_to_judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field, model_validator

from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.asking.cost import Cost
from foresail.curate.document import Document, Drop
from foresail.curate.judging.judged_part import judged
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import Outcome
from foresail.recipe.keys import Tables
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.judge import JudgeForm
from foresail.recipe.tables.part import CheckedPart, Part
from foresail.recipe.tables.values import Texts
from foresail.rewards.judging.judge import Judge, Rating, Unjudged
from foresail.rewards.judging.question import Judged, rubric_question
from foresail.rewards.judging.rubric import Rubric, distinct_names, load_rubric, own_files
from foresail.rollout.answering.answerer import check_answerer

NOTHING = "nothing_to_judge"


class JudgedRubric(Part):
    """A rubric of a step, and which documents are dropped by it."""

    name: str = Field(
        description="of documents fluency, education, reasoning, domain; of answers quality, correctness, "
        "harmlessness; of requests task, task_detail; or a file of your own, NAME.toml"
    )
    least: int | None = Field(None, description="of levels: documents below are dropped")
    only: Texts = Field((), description="of classes: documents of others are dropped")

    @model_validator(mode="before")
    @classmethod
    def read_name(cls, table: Any) -> Any:
        return {"name": table} if isinstance(table, str) else table

    def opened(self) -> Rubric:
        rubric = load_rubric(self.name)
        if self.least is not None and rubric.classes:
            raise ValueError(f"least is for levels, and rubric {rubric.name} has classes; use only")
        for chosen in self.only:
            if chosen not in rubric.classes:
                raise ValueError(f"rubric {rubric.name} has no class {chosen!r}, but {rubric.answers}")
        return rubric

    def drop(self, name: str, label: int | str) -> Drop | None:
        if self.least is not None and int(label) < self.least:
            return Drop(f"low_{name}", f"{label}, at least {self.least} is required")
        return Drop(f"other_{name}", str(label)) if self.only and label not in self.only else None


class JudgeStep(CheckedPart):
    """A model's labels by rubrics, and documents dropped by them."""

    takes: ClassVar[Holds] = ANY

    answerer: Answerer = Field(description="who judges")
    rubrics: Tables[JudgedRubric] = Field(description='tables, or names alone: ["education", "domain"]')
    unjudged: str = Field(
        "drop", pattern="^(drop|keep)$", description="a document without a verdict: drop, or keep it as it is"
    )
    batch_size: int = Field(64, ge=1, le=65536, description="documents that are asked about at once")
    form: JudgeForm = Field(
        JudgeForm(max_chars=6000), description="how it is asked, and how its answer is read"
    )

    def mistakes(self) -> Iterator[str]:
        if not self.rubrics:
            yield "rubrics is empty; name one at least"

    def preflight(self) -> None:
        check_answerer(self.answerer)
        self.opened()

    def files(self) -> list[str]:
        return own_files(rubric.name for rubric in self.rubrics)

    def opened(self) -> list[Rubric]:
        return distinct_names([rubric.opened() for rubric in self.rubrics])

    def cost(self, documents: int, characters: int) -> Cost:
        """Every document is shown once, or once for every rubric where probabilities are read."""
        return judging_cost(documents, characters, self.opened(), self.form, self.answerer)

    def open_asking(self, cache: AnswerCache) -> Callable[[Sequence[Document]], Sequence[Outcome]]:
        judge, rubrics = Judge(self.form, Asking(self.answerer, cache)), self.opened()

        def run(documents: Sequence[Document]) -> Sequence[Outcome]:
            ratings = rate_documents(documents, judge, rubrics)
            return [self.settle(*both, rubrics) for both in zip(documents, ratings, strict=True)]

        return run

    def settle(self, document: Document, rating: Rating | Unjudged, rubrics: Sequence[Rubric]) -> Outcome:
        if isinstance(rating, Unjudged):
            return document if self.unjudged == "keep" else Drop(rating.reason, rating.detail)
        for settings, rubric in zip(self.rubrics, rubrics, strict=True):
            if (drop := settings.drop(rubric.name, rating.labels[rubric.name])) is not None:
                return drop
        return replace(document, metadata=document.metadata | rating.labels)


def rate_documents(
    documents: Sequence[Document], judge: Judge, rubrics: Sequence[Rubric]
) -> list[Rating | Unjudged]:
    texts = [judged(document, judge.form.max_chars) for document in documents]
    ratings = iter(judge.rate([text for text in texts if text is not None], rubrics))
    return [Unjudged(NOTHING) if text is None else next(ratings) for text in texts]


def judging_cost(
    documents: int, characters: int, rubrics: Sequence[Rubric], form: JudgeForm, answerer: Answerer
) -> Cost:
    """Frames and rubrics included; texts may be shortened, so it is an upper bound."""
    in_words = form.read == "text"
    groups = [rubrics] if in_words else [[rubric] for rubric in rubrics]
    around = sum(
        len(message.content)
        for group in groups
        for message in rubric_question(Judged(response=""), group, form).messages
    )
    return Cost(
        requests=documents * len(groups),
        prompt_characters=characters * len(groups) + documents * around,
        answer_tokens=documents * len(groups) * (answerer.max_new_tokens if in_words else 1),
    )
