"""Lengths, languages, domains and sources: what was read beside what is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from foresail.curate.report.markup import bar, count, inline, share, text
from foresail.curate.run.summary import Summary
from foresail.curate.run.tops import Tops

TOP = 25
SHORT = 6  # bits


def counts_sections(summary: Summary) -> str:
    return "".join(
        (
            "<div class=columns>",
            lengths(summary),
            tops(
                "Languages",
                "language",
                summary.languages(),
                summary.phases[-1].after.languages,
                LANGUAGE_NOTE,
            ),
            tops("Domains", "domain", summary.domains(), summary.phases[-1].after.domains, ""),
            sources(summary),
            "</div>",
            decided(summary.decided),
            outputs(summary.outputs),
            mixtures(summary.mixtures),
        )
    )


LANGUAGE_NOTE = "A document that was dropped before a step found its language is unknown."


def lengths(summary: Summary) -> str:
    before, after = by_bucket(summary.phases[0].input_lengths), by_bucket(summary.phases[-1].after.lengths)
    bits = range(min([*before, *after], default=0), max([*before, *after], default=-1) + 1)
    rows = [(bucket(one), before[one], after[one]) for one in bits]
    note = "Bytes as read (of a page: with its markup), and bytes of the text that is kept."
    return pairs("Lengths", "", rows, note, has_share=False)


def by_bucket(lengths: Counter[int]) -> Counter[int]:
    """Short ones together."""
    merged: Counter[int] = Counter()
    for bits, number in lengths.items():
        merged[max(bits, SHORT)] += number
    return merged


def bucket(bits: int) -> str:
    """bucket(11) -> "1 to 2 KiB"."""
    if bits == SHORT:
        return f"below {2**bits} bytes"
    unit, name = next(
        (unit, name) for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")) if bits > unit
    )
    return f"{2 ** (bits - 1 - unit)} to {2 ** (bits - unit)} {name}"


def tops(title: str, noun: str, before: Tops, after: Tops, note: str) -> str:
    rows = [(name, number, after.counts.get(name, 0)) for name, number in before.ranked()]
    if not rows or (noun == "language" and [name for name, _, _ in rows] == ["unknown"]):
        return ""
    if before.missing or after.missing:
        most = count(max(before.missing, after.missing))
        note += f" Of very many {noun}s; a count may be too low, by {most} at most."
    if len(rows) > TOP:
        note += f" The first {TOP} of {count(len(rows))}."
    return pairs(title, noun, rows[:TOP], note)


def sources(summary: Summary) -> str:
    rows = [(name, counts.read, counts.kept) for name, counts in summary.sources.items()]
    ranked = sorted(rows, key=lambda row: -row[1])
    note = f"The first {TOP} of {count(len(rows))}." if len(rows) > TOP else ""
    return pairs("Sources", "source", ranked[:TOP], note)


def pairs(
    title: str, noun: str, rows: Iterable[tuple[str, int, int]], note: str, has_share: bool = True
) -> str:
    """A bar for what was read above a bar for what is kept."""
    rows = [*rows]
    most = max((max(before, after) for _, before, after in rows), default=0)
    body = "".join(
        f"<tr><th>{inline(name)}</th>"
        f"<td class=wide>{bar([('read', before)], most)}{bar([('kept', after)], most)}</td>"
        f"<td>{count(before)}</td><td>{count(after)}</td><td>{share(after, before) if has_share else ''}</td></tr>"
        for name, before, after in rows
    )
    return (
        f"<section><h2>{title}</h2><div class=scroll><table class=pairs><thead><tr><th>{noun}</th>"
        f"<th class=wide></th><th>read</th><th>kept</th><th></th></tr></thead><tbody>{body}</tbody></table></div>"
        f"<p class=small>{note}</p></section>"
    )


def decided(figures: dict[str, dict[str, Any]]) -> str:
    """What steps that see all documents tell of their decisions."""
    blocks = []
    for label, row in figures.items():
        lines = "".join(
            f"<dt>{inline(key)}</dt><dd>{inline(shown(value))}</dd>" for key, value in row.items()
        )
        blocks.append(f"<h3>{inline(label)}</h3><dl class=figures>{lines}</dl>")
    return f"<section><h2>Decisions over all documents</h2>{''.join(blocks)}</section>" if blocks else ""


def shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:2000]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def outputs(written: dict[str, Any]) -> str:
    rows = []
    for folder, output in written.items():
        tokens = output.get("tokens", {})
        for group, documents in output["documents"].items():
            name = f"{folder}/{group}" if group else folder
            more = f", {count(tokens[group])} tokens" if group in tokens else ""
            rows.append(f"<li><code>{text(name)}</code>: {count(documents)} documents{more}</li>")
    more = f"<li>… and {len(rows) - 200} folders more</li>" if len(rows) > 200 else ""
    return f"<section><h2>Written</h2><ul>{''.join(rows[:200])}{more}</ul></section>" if rows else ""


def mixtures(written: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{text(file)}</td><td>{text(name)}</td><td>{share:.1%}</td></tr>"
        for file, mixture in written.items()
        for name, share in mixture["shares"].items()
    ]
    head = "<tr><th>file</th><th>corpus</th><th>share</th></tr>"
    return f"<section><h2>Mixtures</h2><table>{head}{''.join(rows)}</table></section>" if rows else ""
