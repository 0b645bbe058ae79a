"""E-commerce tasks as problems: row n is a function of its settings and of n alone, made when it is asked for.

rows = ShopRows(plan=plan, length=10000)
rows[17].prompt[0].content        the question
rows[17].extra["made"]            where it comes from
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, overload

from foresail.data.made.shop.cards import Layout, Scene
from foresail.data.made.shop.form import Draft
from foresail.data.made.shop.plan import SPLITS, Place, Plan
from foresail.records import Message, Problem

SOURCE, VERSION = "shop-tasks", 1
LAYOUTS: dict[str, tuple[Layout, ...]] = {"train": ("lines", "inline"), "test": ("bars",)}
BARE = ("json", "title", "search")  # kinds whose reply is the answer alone


@dataclass(frozen=True, kw_only=True, eq=False)
class ShopRows(Sequence[Problem]):
    plan: Plan
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, number: int) -> Problem: ...
    @overload
    def __getitem__(self, number: slice) -> list[Problem]: ...

    def __getitem__(self, number: int | slice) -> Problem | list[Problem]:
        if isinstance(number, slice):
            return [make_row(self.plan, one) for one in range(*number.indices(self.length))]
        return make_row(self.plan, range(self.length)[number])


def make_row(plan: Plan, number: int) -> Problem:
    place = plan.place(number)
    _, phrases = SPLITS[plan.split]
    rng = Random(f"shop row {VERSION} {plan.table.fingerprint} {plan.split} {plan.seed} {number}")
    scene = Scene(
        pool=place.pool,
        language=place.language,
        rng=rng,
        split=phrases,
        layout=LAYOUTS[phrases][place.phrase % len(LAYOUTS[phrases])],
    )
    draft = place.form.write(scene, place.anchor)
    template = str(place.language.phrases[place.task][place.form.name][phrases][place.phrase])
    parts = [scene.fragment("openings"), template.format(**draft.slots)]
    question = "".join(parts) + "\n" + scene.fragment("instructions", place.form.kind)
    return Problem(
        id=row_id(plan, place, number),
        prompt=(Message(role="user", content=question),),
        answer=draft.answer,
        source=SOURCE,
        extra={
            "check": dict(draft.check),
            "solution": solution(scene, place.form.kind, draft),
            "made": provenance(plan, place, number, draft),
        },
    )


def solution(scene: Scene, kind: str, draft: Draft) -> str:
    """The reasoning, then the answer as the question asks for it."""
    if kind in BARE:
        return draft.answer
    stated = f"{scene.label('answer')}{scene.language.marks['colon']}{draft.answer}"
    return f"{draft.solution}\n{stated}" if draft.solution else stated


def provenance(plan: Plan, place: Place, number: int, draft: Draft) -> dict[str, Any]:
    table = plan.table
    return {
        "generator": SOURCE,
        "version": VERSION,
        "seed": plan.seed,
        "number": number,
        "split": plan.split,
        "task": place.task,
        "form": place.form.name,
        "language": place.language.code,
        "template": f"{place.task}.{place.form.name}/{SPLITS[plan.split][1]}/{place.phrase}",
        "table": table.name,
        "fingerprint": table.fingerprint,
        "invented": list(table.invented),
        "rows": list(dict.fromkeys(offer.variant.id for offer in draft.offers)),
        "asked": dict(draft.asked),
    }


def row_id(plan: Plan, place: Place, number: int) -> str:
    """shop-tasks:8f3a01c2:test:17:th:numerical.discount; the digits stand for table, seed, tasks and languages."""
    settings = f"{VERSION} {plan.table.fingerprint} {plan.seed} {plan.languages} {plan.tasks}"
    made_of = f"{zlib.crc32(settings.encode()):08x}"
    return f"{SOURCE}:{made_of}:{plan.split}:{number}:{place.language.code}:{place.task}.{place.form.name}"
