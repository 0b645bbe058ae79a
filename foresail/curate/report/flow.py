"""How many documents and bytes go through the steps, what each step drops, and what it costs."""

from __future__ import annotations

from foresail.curate.asking.cost import describe_cost
from foresail.curate.report.markup import bar, count, inline, share, size, text
from foresail.curate.run.summary import Summary

MEGA = 1e6


def tiles(summary: Summary) -> str:
    """The five figures that one asks for first."""
    seconds = summary.cpu_seconds
    figures = [
        ("documents read", count(summary.inputs), size(summary.input_bytes)),
        ("documents kept", count(summary.kept), size(summary.kept_bytes)),
        ("dropped", count(sum(sum(one.values()) for one in summary.dropped().values())), ""),
        ("bytes kept of those read", share(summary.kept_bytes, summary.input_bytes), ""),
        ("CPU time", spent(seconds), f"{rate(summary.input_bytes, seconds)} a core-second"),
    ]
    each = (
        f"<div><dt>{name}</dt><dd>{value}</dd><dd class=small>{more}</dd></div>"
        for name, value, more in figures
    )
    return f"<dl class=tiles>{''.join(each)}</dl>"


def flow_section(summary: Summary) -> str:
    flow, dropped = summary.flow(), summary.dropped()
    widest = max([summary.inputs, *(documents for documents, _ in flow.values())])
    came = summary.inputs
    rows = []
    for label in summary.steps:
        left, left_bytes = flow[label]
        lost = sum(dropped.get(label, {}).values())
        seconds, worked = summary.work.get(label, (0.0, 0))
        rows.append(
            f"<tr><th>{inline(label)}</th>"
            f"<td class=wide>{bar([('kept', left), ('lost', lost)], widest)}</td>"
            f"<td>{count(left)}</td><td>{'−' + count(lost) if lost else '0'}</td><td>{share(lost, came)}</td>"
            f"<td>{size(left_bytes)}</td><td>{seconds:,.1f}</td><td>{rate(worked, seconds)}</td></tr>"
        )
        came = left
    rest = sum(seconds for label, (seconds, _) in summary.work.items() if label not in flow)
    return (
        "<section><h2>Through the steps</h2><div class=scroll><table class=flow><thead><tr><th>step</th>"
        "<th class=wide></th><th>documents that go on</th><th>dropped</th><th>of what came</th>"
        "<th>bytes that go on</th><th>CPU seconds</th><th>a core-second</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class=small>Besides: {rest:,.1f} CPU seconds to write down what became of each document. CPU time is "
        "that of the processes that finished their files; what a killed one had spent is not in it. A step may "
        f"make several documents of one.</p>{costs(summary)}</section>"
    )


def costs(summary: Summary) -> str:
    lines = "".join(
        f"<li>{inline(label)} asks a model: {text(describe_cost(cost))}</li>"
        for label, cost in summary.costs.items()
    )
    return f"<ul class=small>{lines}</ul>" if lines else ""


def reasons_section(summary: Summary) -> str:
    flow = summary.flow()
    came, rows = summary.inputs, []
    most = max((number for reasons in summary.dropped().values() for number in reasons.values()), default=0)
    dropped = summary.dropped()
    for label in summary.steps:
        reasons = dropped.get(label, {})
        for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
            rows.append(
                f"<tr><th>{inline(label)}</th><td class=name><button type=button data-show="
                f'"{text(f"{label}: {reason}")}">{inline(reason)}</button></td>'
                f"<td class=wide>{bar([('lost', number)], most)}</td><td>{count(number)}</td>"
                f"<td>{share(number, came)}</td><td>{share(number, summary.inputs)}</td></tr>"
            )
        came = flow[label][0]
    if not rows:
        return "<section><h2>Dropped, by reason</h2><p>Nothing was dropped.</p></section>"
    return (
        "<section><h2>Dropped, by reason</h2><p class=small>A reason shows its examples.</p><div class=scroll>"
        "<table class=reasons><thead><tr><th>step</th><th class=name>reason</th><th class=wide></th>"
        f"<th>documents</th><th>of what came</th><th>of all read</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def spent(seconds: float) -> str:
    """spent(7300) -> "2.0 h"."""
    return (
        f"{seconds:.1f} s"
        if seconds < 300
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def rate(number: int, seconds: float) -> str:
    """Nothing where too little was measured."""
    return f"{number / MEGA / seconds:,.2f} MB" if number and seconds >= 0.01 else "–"
