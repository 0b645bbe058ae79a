"""Pages with their main content as text, to train the scorer of main content on: the dev split of WCXB, magic-html.

read_gold(wcxb, magic, apart) -> [GoldPage("0001", "https://a.org/", "article", "a.org", html, "The text …"), …]

`wcxb` is a checkout of Murrough-Foley/web-content-extraction-benchmark, of which only `dev/` is opened. `apart` are
the pages that the scorer is measured on: neither they nor other pages of their sites are returned.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECOND_LEVEL = frozenset("co com org net ac gov edu".split())


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldPage:
    id: str
    url: str
    type: str
    site: str
    html: str
    gold: str


def site_of(url: str) -> str:
    """site_of("https://www.shop.co.uk/a") -> "shop.co.uk" """
    host = re.sub(r"^\w+://", "", url).split("/")[0].split(":")[0].lower().split(".")
    parts = 3 if len(host) > 2 and len(host[-1]) == 2 and host[-2] in SECOND_LEVEL else 2
    return ".".join(host[-parts:])


def read_gold(wcxb: Path, magic: Path | None, apart: Path) -> list[GoldPage]:
    with lzma.open(apart, "rt") as file:
        measured = [json.loads(line) for line in file]
    ids = {page["id"] for page in measured}
    sites = {site_of(page["url"]) for page in measured if page["url"]}
    pages = [*read_wcxb(wcxb), *(read_magic(magic) if magic else ())]
    # a page without address may be of any site
    return [page for page in pages if page.url and page.id not in ids and page.site not in sites]


def read_wcxb(folder: Path) -> Iterator[GoldPage]:
    for file in sorted((folder / "dev/ground-truth").glob("*.json")):
        record = json.loads(file.read_text())
        packed = folder / "dev/html" / f"{file.stem}.html.gz"
        if not packed.exists():
            continue
        kind = record["_internal"]["page_type"]
        kind = kind["primary"] if isinstance(kind, dict) else kind
        url = record.get("url") or ""
        yield GoldPage(
            id=file.stem,
            url=url,
            type="collection" if kind == "category" else kind,
            site=site_of(url),
            html=gzip.decompress(packed.read_bytes()).decode("utf-8", "replace"),
            gold=record["ground_truth"].get("main_content") or "",
        )


def read_magic(folder: Path) -> Iterator[GoldPage]:
    """opendatalab/magic-html, its folder benchmark/data: articles and forums."""
    for kind in ("forum", "article"):
        for key, record in json.loads((folder / kind / "base.json").read_text()).items():
            html = (folder / kind / "htmls" / f"{key}.html").read_bytes().decode("utf-8", "replace")
            yield GoldPage(
                id=key,
                url=record["url"],
                type=kind,
                site=site_of(record["url"]),
                html=html,
                gold=record["content"],
            )
