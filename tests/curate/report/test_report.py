"""The report of a curation: its figures are those of the run, and no document can break the page."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path

from small_recipe import small_recipe, step

from foresail.curate.curation import curate
from foresail.curate.report.markup import share, size, text
from foresail.curate.report.page import page_of
from foresail.curate.run.statistics import Form, Statistics
from foresail.curate.run.summary import Summary

PARTS = [
    *("</script>", "<script>alert(1)</script>", "<!--", "-->", "]]>", "<![CDATA[", "</pre>", "</style>"),
    *('"', "'", "&lt;", "&", "<", ">", "=", "`", "\\", "{", "}", "${x}", "\0", "\ud800", "\udfff", "\x1b[2J"),
    *("\u202e", "\u2066", "שלום", "مرحبا", "\u2028", "\ufeff", "\uffff", "é", "ไทย", "😀", "\r\n", "\t", " "),
    *("<img src=x onerror=alert(1)>", "javascript:alert(1)", "<base href=//evil>", "onload=", "</article>"),
    *("<meta http-equiv=refresh content=0>", "<link rel=stylesheet href=//evil>", "<svg/onload=alert(1)>"),
]


class Outline(HTMLParser):
    """Elements and attributes of a page, with the text of scripts and styles apart."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "pre":
            self.texts.append(data)


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    parsed.close()
    assert parsed.open == []
    return parsed


def summary_of(name: str, url: str, content: str, reason: str, metadata: dict[str, object]) -> Summary:
    """One document that is dropped and one that is kept, with these texts everywhere."""
    row = {"id": name, "url": url, "text": content, "metadata": metadata}
    statistics = Statistics()
    drop = {"step": f"1 {reason}", "reason": reason, "detail": content, "document": row}
    entry = {
        "bytes": len(content),
        "flow": [[2, 9], [1, 4]],
        "kept": [row],
        "dropped": [drop],
        "seen": reason,
    }
    statistics.add(entry, Form(labels=("read", f"1 {reason}")))
    return Summary(
        steps=["read", f"1 {reason}"],
        phases=[statistics],
        decided={f"1 {reason}": {name: content, "share": 0.25, "n": [url]}},
        outputs={name: {"documents": {reason: 1}}},
    )


def hostile(chance: random.Random, parts: int = 6) -> str:
    return "".join(chance.choice(PARTS) for _ in range(chance.randrange(parts)))


def plain_summary() -> Summary:
    return summary_of("id", "http://a.org/", "a text", "reason", {"language": "en"})


def test_no_text_changes_the_structure_of_the_page() -> None:
    plain = outline(page_of(plain_summary(), "name"))
    for seed in range(150):
        chance = random.Random(seed)
        clean = [f"{n}{hostile(chance)}".encode("utf-8", "replace").decode() for n in range(3)]
        url = f"http://a.org/{hostile(chance)}"
        summary = summary_of(clean[0], url, clean[1], clean[2], {"language": clean[0], "k": clean[1]})
        page = page_of(summary, hostile(chance))
        parsed = outline(page)
        assert parsed.tags == plain.tags and parsed.attributes == plain.attributes, seed
        page.encode()
        assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", page), seed


def test_the_page_loads_nothing_and_allows_its_own_script_alone() -> None:
    page = page_of(plain_summary(), "name")
    assert not re.search(r"https?://(?!a\.org)|\bsrc=|\bhref=|@import|url\(", page)
    assert re.search(r"default-src 'none'.*script-src 'sha256-[\w+/=]{44}'", page)


def test_shown_texts_are_those_of_the_documents() -> None:
    content = "if a < b and b > c: print('&amp;', \"x\")\n    </pre> done"
    parsed = outline(page_of(summary_of("id", "", content, "reason", {}), "name"))
    assert content in parsed.texts


def test_a_long_text_is_cut_in_the_middle() -> None:
    page = page_of(
        summary_of("id", "", "begin" + "x" * 10_000_000 + "the end", "reason", {"a": "y" * 10**6}), "n"
    )
    assert len(page) < 60_000 and "begin" in page and "the end" in page and "characters …" in page


def test_figures_of_a_run(tmp_path: Path) -> None:
    steps = step(tmp_path, "halves"), step(tmp_path, "Exact"), step(tmp_path, "short")
    summary = curate(small_recipe(tmp_path, *steps, seed=3, cluster={"workers": 1}))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    halves, exact, short = summary.steps[1:]
    flow, dropped = summary.flow(), summary.dropped()
    assert flow["read"][0] == 80 and flow[halves] == (160, flow["read"][1])
    assert flow[exact][0] == 160 - dropped[exact]["repeated"]
    assert flow[short] == (summary.kept, summary.kept_bytes)
    assert f">{80:,}<" in page and "repeats " in page and "below 64 bytes" in page
    assert {*summary.sources} == {"in"} and summary.sources["in"].kept == summary.kept
    assert {*summary.steps} <= {*summary.work} and summary.cpu_seconds > 0
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert told["flow"][halves][0] == 160 and told["before"]["documents"] == 80
    # through both phases a document is shown as it was read, beside what is left
    assert "as it was read</h4><pre dir=auto tabindex=0>document " in page
    assert "of some length</pre></div><div><h4>what is left</h4>" in page


def test_sizes_shares_and_texts() -> None:
    assert [size(number) for number in (0, 999, 4017, 2e12)] == ["0 bytes", "999 bytes", "4.02 kB", "2 TB"]
    assert (share(1, 8), share(1, 10**6), share(3, 0)) == ("12.5 %", "< 0.1 %", "–")
    assert text("<b a='1'>\0\ud800") == "&lt;b a=&#x27;1&#x27;&gt;\ufffd\ufffd"
