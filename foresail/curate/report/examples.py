"""Documents drawn at random, by reason: how each was read, beside what came to the step or what is left."""

from __future__ import annotations

from typing import Any

from foresail.curate.report.markup import count, inline, text
from foresail.curate.run.summary import Summary

MOST_KINDS = 200  # reasons of which examples are shown: a page that a phone can open


def examples_section(summary: Summary) -> str:
    kinds = {"kept": summary.phases[-1].examples.get("kept", [])}
    for label, reasons in summary.dropped().items():
        for reason in sorted(reasons, key=lambda reason: (-reasons[reason], reason)):
            kind = f"{label}: {reason}"
            kinds[kind] = [one for phase in summary.phases for one in phase.examples.get(kind, [])]
    chosen = dict([*kinds.items()][:MOST_KINDS])
    options = "".join(f'<option value="{text(kind)}">{text(kind)}</option>' for kind in chosen)
    cards = "".join(card(kind, example) for kind, shown in chosen.items() for example in shown)
    left_out = len(kinds) - len(chosen)
    more = f"<p class=small>{left_out} rarer reasons have no examples here.</p>" if left_out else ""
    return (
        '<section id=examples><h2>Examples</h2><p class=controls><label>show <select id=kind><option value="">'
        f"all</option>{options}</select></label> <label>that contain <input id=words type=search></label> "
        f"<output id=number></output></p>{more}{cards}</section>"
    )


def card(kind: str, example: dict[str, Any]) -> str:
    is_kept = kind == "kept"
    seen = example.get("seen")
    now = "what is left" if is_kept else "as it came to the step"
    if seen is None or seen == example["text"]:
        panes = pane("kept as it was read" if is_kept and seen is not None else now, example["text"])
    else:
        panes = pane("as it was read", seen) + pane(now, example["text"])
    detail = f"<p>{inline(example['detail'])}</p>" if example["detail"] else ""
    url = f"<p class=small>{inline(example['url'])}</p>" if example["url"] else ""
    metadata = f"<p class=small>{inline(example['metadata'])}</p>" if example["metadata"] != "{}" else ""
    return (
        f'<article data-kind="{text(kind)}"><header>'
        f"<span class={'kept' if is_kept else 'lost'}>{inline(kind)}</span>"
        f" <b>{inline(example['id'])}</b> "
        f"<span class=small>{count(example['characters'])} characters</span></header>"
        f"{detail}{url}<div class=panes>{panes}</div>{metadata}</article>"
    )


def pane(title: str, content: str) -> str:
    return f"<div><h4>{title}</h4><pre dir=auto tabindex=0>{text(content) or '<i>no text</i>'}</pre></div>"
