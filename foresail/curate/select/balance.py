"""The step `balance`: no topic or level fills the set. The largest groups are cut first.

    [[step]]
    name = "balance"
    by = ["kind", "topic", "level"]
    total = 20000             # the set's size; groups share it as evenly as they can
    most = 4000               # of one group

With groups of 10, 50 and 200 problems, total = 110 keeps 10, 50 and 50. What stays of a group is drawn by
`seed` and the problem's id. Dropped ones have the reason balanced. To repeat problems
instead, see the step `resample`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import Outcome
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts


class Balance(CheckedPart):
    """Caps groups of equal metadata, evenly up to a total."""

    takes: ClassVar[Holds] = ANY

    by: Texts = Field(("topic", "level"), description="keys of metadata that make the groups")
    total: int = Field(0, ge=0, description="documents that stay in all; 0: as many as there are")
    most: int = Field(0, ge=0, description="documents that stay of a group; 0: no such limit")
    seed: int = Field(0, ge=0, description="of what stays of a group")

    def mistakes(self) -> Iterator[str]:
        if not self.by:
            yield 'by is empty; name keys of metadata, like by = ["topic", "level"]'
        if not self.total and not self.most:
            yield "set total or most; without them everything stays"

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        from foresail.curate.select.copies import draw

        with features.open("w", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps([self.group_of(document), draw(self.seed, document.id)]) + "\n")

    def group_of(self, document: Document) -> str:
        return " / ".join(str(document.metadata.get(key, "none")) for key in self.by)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        pieces = [
            [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in features
        ]
        rows = [
            (group, drawn, number)
            for number, (group, drawn) in enumerate(row for piece in pieces for row in piece)
        ]
        sizes = Counter(group for group, _, _ in rows)
        quotas = even_quotas(sizes, self.total or len(rows), self.most or len(rows))
        left = dict(quotas)
        staying = set()
        for group, _, number in sorted(rows):
            if left[group]:
                left[group] -= 1
                staying.add(number)
        number = 0
        for piece, file in zip(pieces, decisions, strict=True):
            lines = []
            for group, _ in piece:
                lines.append(
                    json.dumps("" if number in staying else f"{quotas[group]} of {sizes[group]} in {group}")
                )
                number += 1
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return {"groups": {group: [sizes[group], quotas[group]] for group in sorted(sizes)}}

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        lines = [json.loads(line) for line in decisions.read_text(encoding="utf-8").splitlines()]
        return lambda number, document: Drop("balanced", lines[number]) if lines[number] else document


def even_quotas(sizes: Mapping[str, int], total: int, most: int) -> dict[str, int]:
    """even_quotas({"a": 10, "b": 50, "c": 200}, 110, 300) -> {"a": 10, "b": 50, "c": 50}: max-min fair shares."""
    quotas: dict[str, int] = {}
    left = total
    smallest_first = sorted(sizes, key=lambda group: (sizes[group], group))
    for place, group in enumerate(smallest_first):
        share = left // (len(smallest_first) - place)
        # what does not divide goes to the last groups, which are the largest
        quotas[group] = min(sizes[group], most, share)
        left -= quotas[group]
    return quotas
