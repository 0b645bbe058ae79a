"""Reformulate: what a problem or a conversation asks, rewritten by a model in several styles.

[[step]]
name = "reformulate"
styles = ["formal", "casual", "story"]      # default: all that are shipped, but those that need `solve`

[step.answerer]
endpoint = "http://localhost:8000/v1"
model = "qwen3-8b"
temperature = 0.7

A rewriting is kept only where the answer survives (`fidelity.py`); with `[step.solve]` a model has to reach it too.
Its id is ROW~STYLE, its metadata `made` says how it was made.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import Field

from foresail.chat.endpoint import Refused
from foresail.curate.asking.asking import Asking
from foresail.curate.asking.cache import AnswerCache
from foresail.curate.asking.cost import Cost
from foresail.curate.document import Document, Drop
from foresail.curate.lineage.section import FROM, MADE, row_origin
from foresail.curate.rewriting.chrf import chrf
from foresail.curate.rewriting.fidelity import GuessLanguage, Rules, check_rewriting
from foresail.curate.rewriting.question import asked, with_asked
from foresail.curate.rewriting.regenerating import regenerate
from foresail.curate.rewriting.solving import Solve, Solver, check_solutions
from foresail.curate.rewriting.styles import REWRITTEN, Style, load_styles, rewriting_prompt
from foresail.curate.rewriting.tagged import read_tagged
from foresail.curate.rewriting.variant import Variant
from foresail.curate.rows.holds import ROWS, Holds
from foresail.curate.rows.problem import problem_of
from foresail.curate.rows.row import MESSAGES, with_row
from foresail.curate.step import Outcome
from foresail.recipe.tables.answerer import Answerer
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.values import Texts


class Reformulate(Part):
    """What is asked, rewritten in several styles by a model."""

    takes: ClassVar[Holds] = ROWS

    answerer: Answerer = Field(description="who rewrites: a checkpoint, or a server")
    styles: Texts = Field((), description="names of styles; default: all, but those that need solve")
    styles_file: str = Field("", description="a TOML file of [[style]] tables; default: the styles shipped")
    variants: int | None = Field(
        None, ge=1, description="styles of a row, drawn by its id; default: each of them"
    )
    keep_original: bool = Field(True, description="the row goes on beside its rewritings")
    answers: Literal["keep", "regenerate"] = Field(
        "keep", description="of a conversation: regenerate asks the model for an answer to the new question"
    )
    most_alike: float = Field(
        0.9, gt=0, le=1, description="chrF with the original, or another style, above which one is a copy"
    )
    longest: float = Field(4.0, gt=1, description="length of a rewriting, as a multiple of the original's")
    solve: Solve | None = Field(None, description="a model has to reach the answer; for problems")
    seed: int = Field(0, ge=0, description="of the styles that are drawn")
    batch_size: int = Field(16, ge=1, description="rows whose questions are asked at once")

    def files(self) -> tuple[str, ...]:
        return (self.styles_file,) if self.styles_file else ()

    def preflight(self) -> None:
        self.chosen()

    def chosen(self) -> tuple[Style, ...]:
        styles = load_styles(self.styles_file)
        if unknown := [name for name in self.styles if name not in styles]:
            raise ValueError(f"styles: there is no style {unknown[0]}; there are {', '.join(styles)}")
        chosen = [styles[name] for name in self.styles] or [
            style for style in styles.values() if self.solve is not None or not style.more_quantities
        ]
        if self.solve is None and (loose := [style.name for style in chosen if style.more_quantities]):
            raise ValueError(
                f"the style {loose[0]} may add numbers, so only a solution shows that the answer is the same; "
                "add [step.solve]"
            )
        if self.variants is not None and self.variants > len(chosen):
            raise ValueError(f"variants = {self.variants}, and there are {len(chosen)} styles")
        return tuple(chosen)

    def cost(self, documents: int, characters: int) -> Cost:
        variants = self.variants or len(self.chosen())
        rewritings = documents * variants
        requests, prompts = rewritings, variants * (characters + 1200 * documents)
        tokens = rewritings * self.answerer.max_new_tokens
        if self.answers == "regenerate":
            requests, tokens = 2 * requests, 2 * tokens
            prompts += int(variants * characters * self.longest)
        if self.solve is not None:
            solver = self.solve.answerer or self.answerer
            solutions = (documents + rewritings) * self.solve.samples
            requests, tokens = requests + solutions, tokens + solutions * solver.max_new_tokens
            prompts += int(self.solve.samples * characters * (1 + variants * self.longest))
        return Cost(requests=requests, prompt_characters=prompts, answer_tokens=tokens)

    def open_asking(self, cache: AnswerCache) -> Callable[[Sequence[Document]], list[Outcome]]:
        from foresail.curate.language.step import open_model

        ask = Asking(self.answerer, cache)
        solver = None
        if self.solve is not None:
            solver = Solver(self.solve, Asking(self.solve.answerer or self.answerer, cache))
        return Rewriter(self, self.chosen(), ask, solver, open_model("").guess)


@dataclass(frozen=True)
class Rewriter:
    settings: Reformulate
    styles: tuple[Style, ...]
    ask: Asking
    solver: Solver | None
    guess: GuessLanguage

    def __call__(self, documents: Sequence[Document]) -> list[Outcome]:
        variants = [
            Variant(document, style)
            for document in documents
            if asked(document)
            for style in self.styles_of(document)
        ]
        self.rewrite(variants)
        self.drop_repeated(variants)
        if self.settings.answers == "regenerate":
            regenerate([one for one in variants if one.drop is None], self.ask)
        if self.solver is not None:
            check_solutions(self.solver, [one for one in variants if one.drop is None])
        return [self.outcome(document, variants) for document in documents]

    def outcome(self, document: Document, variants: Sequence[Variant]) -> Outcome:
        own = [one for one in variants if one.source is document]
        made = [*self.settled(own)] if own else [Drop("nothing_asked")]
        return [document, *made] if self.settings.keep_original else made

    def settled(self, variants: Sequence[Variant]) -> Iterator[Document | Drop]:
        for one in variants:
            assert one.document is not None
            yield one.document if one.drop is None else replace(one.drop, document=one.document)

    def styles_of(self, document: Document) -> Sequence[Style]:
        if self.settings.variants is None:
            return self.styles
        digest = hashlib.blake2b(
            f"{self.settings.seed}:{document.id}".encode("utf-8", "replace"), digest_size=8
        )
        places = random.Random(digest.digest()).sample(range(len(self.styles)), self.settings.variants)
        return [self.styles[place] for place in sorted(places)]

    def rewrite(self, variants: Sequence[Variant]) -> None:
        questions = [rewriting_prompt(asked(one.source), one.style) for one in variants]
        answers = self.ask(questions, [one.id for one in variants])
        for one, answer in zip(variants, answers, strict=True):
            if isinstance(answer, Refused):
                one.document, one.drop = replace(one.source, id=one.id), Drop("refused", answer.detail[:300])
                continue
            text = read_tagged(answer, REWRITTEN)
            try:
                one.drop = check_rewriting(asked(one.source), text, self.rules(one), self.guess)
                one.document = self.made(one, text)
            except Exception as error:  # of one row; the others go on
                one.drop = Drop("failed", f"{type(error).__name__}: {error}"[:200])
                one.document = replace(one.source, id=one.id)

    def rules(self, one: Variant) -> Rules:
        row = one.source.row or {}
        if MESSAGES in row:
            answers = [message["content"] for message in row[MESSAGES] if message["role"] == "assistant"]
            answer = answers[0] if answers else ""
        else:
            answer = problem_of(one.source.id, row).answer
        return Rules(
            answer=answer,
            language=one.style.language,
            names=one.style.names,
            more_quantities=one.style.more_quantities,
            most_alike=self.settings.most_alike,
            longest=self.settings.longest,
        )

    def made(self, one: Variant, text: str) -> Document:
        made = {
            "by": "reformulate",
            "model": self.settings.answerer.name,
            "seed": self.settings.answerer.seed,
            "style": one.style.name,
            "prompt_hash": one.style.prompt_hash,
            FROM: [row_origin(one.source)],
        }
        document = replace(one.source, id=one.id, metadata={**one.source.metadata, MADE: made})
        return with_row(document, with_asked(one.source, text)) if text.strip() else document

    def drop_repeated(self, variants: Sequence[Variant]) -> None:
        """Of two styles that say the same, the first stays."""
        distinct: dict[str, list[Variant]] = {}  # by the row they come from
        for one in variants:
            if one.drop is not None or one.document is None:
                continue
            others = distinct.setdefault(one.source.id, [])
            text = asked(one.document)
            for other in others:
                assert other.document is not None
                if chrf(text, asked(other.document)) > self.settings.most_alike:
                    one.drop = Drop("copy", f"of {other.id}")
                    break
            else:
                others.append(one)
