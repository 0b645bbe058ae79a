"""What a finished curation came to, for people and for `summary.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foresail.curate.asking.cost import Cost
from foresail.curate.run.statistics import DOMAINS, LANGUAGES, Statistics, lengths_json
from foresail.curate.run.tops import Tops


@dataclass(frozen=True, kw_only=True)
class SourceCount:
    """Documents and bytes of one source: read, and kept in the end."""

    read: int
    read_bytes: int
    kept: int
    kept_bytes: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """`phases`: statistics of each; `decided`: figures of corpus steps by label; `outputs`: by sink;
    `mixtures`: by file.

    `work`: CPU seconds by step and the bytes that came to the step in them. `costs`: of steps that ask a model.
    """

    steps: list[str]
    phases: list[Statistics]
    decided: dict[str, dict[str, Any]]
    outputs: dict[str, Any]
    mixtures: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, SourceCount] = field(default_factory=dict)
    work: dict[str, tuple[float, int]] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        return self.phases[0].inputs

    @property
    def input_bytes(self) -> int:
        return self.phases[0].input_bytes

    @property
    def kept(self) -> int:
        return self.phases[-1].after.documents

    @property
    def kept_bytes(self) -> int:
        return self.phases[-1].after.bytes

    @property
    def cpu_seconds(self) -> float:
        return sum(seconds for seconds, _ in self.work.values())

    def dropped(self) -> dict[str, dict[str, int]]:
        """By step and reason, in the order of the steps."""
        merged: dict[str, Counter[str]] = {}
        for phase in self.phases:
            for step, reasons in phase.dropped.items():
                merged.setdefault(step, Counter()).update(reasons)
        return {step: dict(merged[step]) for step in dict.fromkeys((*self.steps, *merged)) if step in merged}

    def flow(self) -> dict[str, tuple[int, int]]:
        """Documents and bytes that leave each step."""
        merged = {label: flow for phase in self.phases for label, flow in phase.flow.items()}
        return {step: (merged[step][0], merged[step][1]) if step in merged else (0, 0) for step in self.steps}

    def languages(self) -> Tops:
        """Of all documents, as each was last seen: most get their language by a step."""
        total = Tops(LANGUAGES)
        for side in (*(phase.lost for phase in self.phases), self.phases[-1].after):
            total.merge(side.languages)
        return total

    def domains(self) -> Tops:
        total = Tops(DOMAINS)
        for side in (*(phase.lost for phase in self.phases), self.phases[-1].after):
            total.merge(side.domains)
        return total

    def as_json(self) -> dict[str, Any]:
        """Without what differs from run to run."""
        return {
            "inputs": self.inputs,
            "input_bytes": self.input_bytes,
            "kept": self.kept,
            "kept_bytes": self.kept_bytes,
            "dropped": self.dropped(),
            "flow": self.flow(),
            "before": {
                "documents": self.inputs,
                "bytes": self.input_bytes,
                "lengths": lengths_json(self.phases[0].input_lengths),
                "languages": self.languages().as_json(),
                "domains": self.domains().as_json(),
            },
            "after": self.phases[-1].after.as_json(),
            "sources": {name: vars(counts) for name, counts in self.sources.items()},
            "decided": self.decided,
            "outputs": self.outputs,
            **({"mixtures": self.mixtures} if self.mixtures else {}),
            **({"costs": {step: vars(cost) for step, cost in self.costs.items()}} if self.costs else {}),
        }


def count_sources(
    names: Mapping[str, str], first: Mapping[str, Mapping[str, Any]], last: Mapping[str, Mapping[str, Any]]
) -> dict[str, SourceCount]:
    """`names`: of the source by piece; `first` and `last`: receipts by piece."""
    counts: dict[str, SourceCount] = {}
    for name in dict.fromkeys(names.values()):
        pieces: Sequence[str] = [piece for piece, source in names.items() if source == name]
        counts[name] = SourceCount(
            read=sum(first[piece]["inputs"] for piece in pieces),
            read_bytes=sum(first[piece]["input_bytes"] for piece in pieces),
            kept=sum(last[piece]["after"]["documents"] for piece in pieces),
            kept_bytes=sum(last[piece]["after"]["bytes"] for piece in pieces),
        )
    return counts
