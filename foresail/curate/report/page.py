"""Writes `report.html`: one file that loads nothing, and runs no script but its own.

page_of(summary, "web") -> "<!doctype html>…"
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from foresail.curate.recipe import CurationRecipe
from foresail.curate.report.counts import counts_sections
from foresail.curate.report.examples import examples_section
from foresail.curate.report.flow import flow_section, reasons_section, tiles
from foresail.curate.report.markup import text
from foresail.curate.run.summary import Summary
from foresail.runlog.atomic import write_text

REPORT = "report.html"
HERE = Path(__file__).parent


def write_report(recipe: CurationRecipe, summary: Summary) -> None:
    write_text(recipe.out / REPORT, page_of(summary, recipe.out.name))


def page_of(summary: Summary, name: str) -> str:
    style, script = ((HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # if a document's markup ever got through, the browser would neither load nor run what it names
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    body = "".join(
        (
            tiles(summary),
            flow_section(summary),
            reasons_section(summary),
            counts_sections(summary),
            examples_section(summary),
        )
    )
    return (
        f'<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}"><meta name=viewport content="width=device-width, initial-scale=1"><title>Curation '
        f"{text(name)}</title><style>\n{style}</style></head><body><main><h1>Curation <bdi>{text(name)}</bdi></h1>"
        f"{body}</main><script>{script}</script></body></html>\n"
    )
