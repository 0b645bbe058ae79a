"""Pages with the formulas and code blocks that people or other tools say they hold, for `maths_and_code.py`.

fixtures(Path("../shared/data/html")) -> [Gold("debian", "scipy/…html", html, formulas=["x^2"], code=["a = 1"]), …]

Sets: `debian` (LaTeX and code are in the markup), `defuddle` (its expected Markdown), `recognizer` (files beside
the page), and `bench`, llm-webkit's 54 bench pages, which have no licence: `bench_pages(folder)` reads a copy of
`bench/`.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

ARCHIVES = {
    "debian": "debian_docs_mathjax_code/pages.tar.xz",
    "defuddle": "defuddle_fixtures/fixtures_expected.tar.xz",
    "recognizer": "llm_webkit_recognizer_assets/assets.tar.xz",
}
MATH = re.compile(r'<(span|div)[^>]* class="math notranslate[^>]*>(.*?)</\1>', re.DOTALL)
DELIMITED = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)
HIGHLIGHTED = re.compile(r'<div class="highlight"><pre>(.*?)</pre>', re.DOTALL)
TAG = re.compile(r"<[^>]*>")
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
DOLLARS = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^\s$](?:[^$\n]*[^\s$])?)\$(?![\d$])", re.DOTALL)
# These were plainly made wrong; see docs/curate-extraction.md.
BROKEN = re.compile(
    # AsciiMath misread, or not read at all
    r"\\mathmr|\\setminus (?:\\setminus|\\sqrt)|\\textrm\{|<br ?/>|\\n\\r|^e\^x = 1\+x\+1/|\\left\.\\left\(f"
    r"|\\\\(?:mapsto|hookrightarrow|searrow|bigtriangleup|triangleright)"  # a line end lost
)
BROKEN_CODE = re.compile(
    # quotes of posts
    r"tommy1729|sheldonison|Jean Ecalle's FPS|Mick, on|S\.O\.S\. Mathematics|1\) Consider the formula"
    r"|^A shorter way to run|^public static final String  |^\w+  String$|^public class XmlSuite"  # other spaces
    r"|\n +\{ return x % 2|\\`The salt|复制代码"  # lost a lambda's [], gained backslashes, a button's text
)


@dataclass(frozen=True, kw_only=True)
class Gold:
    """`broken` are formulas that no reader of the page would write; `broken_code` is no code of the page."""

    set: str
    name: str
    html: str
    formulas: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    broken_code: list[str] = field(default_factory=list)


def fixtures(folder: Path) -> list[Gold]:
    golds: list[Gold] = []
    for name, read in (("debian", debian), ("defuddle", defuddle), ("recognizer", recognizer)):
        archive = folder / ARCHIVES[name]
        with tarfile.open(archive) as pages:
            files = {
                member.name: pages.extractfile(member).read().decode("utf-8", "replace")  # type: ignore[union-attr]
                for member in pages
                if member.isfile()
            }
        golds += read(files)
    return golds


def gold(set: str, name: str, html: str, formulas: list[str], code: list[str]) -> Gold:
    formulas = [formula.strip() for formula in formulas if formula.strip()]
    return Gold(
        set=set,
        name=name,
        html=html,
        formulas=[formula for formula in formulas if not BROKEN.search(formula)],
        code=[block for block in code if block.strip() and not BROKEN_CODE.search(block)],
        broken_code=[block for block in code if BROKEN_CODE.search(block)],
        broken=[formula for formula in formulas if BROKEN.search(formula)],
    )


def debian(files: dict[str, str]) -> Iterator[Gold]:
    for name, html in files.items():
        formulas = [
            unescape(TAG.sub("", inline or display))
            for _, element in MATH.findall(html)
            for inline, display in DELIMITED.findall(element)
        ]
        code = [unescape(TAG.sub("", block)) for block in HIGHLIGHTED.findall(html)]
        yield gold("debian", name, html, formulas, code)


def defuddle(files: dict[str, str]) -> Iterator[Gold]:
    for name, html in files.items():
        title = Path(name).stem
        if not name.startswith("fixtures/") or f"expected/{title}.md" not in files:
            continue
        text = files[f"expected/{title}.md"].partition("\n```\n")[2]  # what precedes is metadata
        code = FENCE.findall(text)
        formulas = []
        if title.startswith(
            ("math--", "issues--141", "general--cp4space", "general--wikipedia", "extractor")
        ):
            formulas = [display or inline for display, inline in DOLLARS.findall(FENCE.sub("", text))]
        if formulas or code:
            yield gold("defuddle", title, html, formulas, code)


def recognizer(files: dict[str, str]) -> Iterator[Gold]:
    """Formulas of page X stand in X_1.html and X_inline_1.html, a line each; code in X-0.py, X-1.sh, …"""
    for name, html in files.items():
        stem = name.removesuffix(".html")
        if name.startswith("ccmath/"):
            lines = [
                line
                for suffix in ("_1.html", "_inline_1.html")
                for line in files.get(stem + suffix, "").split("\n")
            ]
            if "_1" not in name or any(lines):
                yield gold("recognizer", name, html, lines, [])
        elif name.startswith("cccode/"):
            blocks = [
                content
                for other, content in files.items()
                if re.fullmatch(re.escape(stem) + r"-\d+(\.\w+)?", other)
            ]
            if blocks:
                yield gold("recognizer", name, html, [], blocks)


def bench_pages(folder: Path) -> list[Gold]:
    """`folder` holds llm-webkit's `bench/data/origin` and `bench/data/groundtruth`."""
    golds = []
    for truth in sorted((folder / "data/groundtruth").glob("*.jsonl")):
        html = (folder / "data/origin" / f"{truth.stem}.html").read_text("utf-8", "replace")
        formulas: list[str] = []
        code: list[str] = []
        for line in truth.read_text().splitlines():
            read_blocks(json.loads(line)["content_list"], formulas, code)
        golds.append(gold("bench", truth.stem, html, formulas, code))
    return golds


def read_blocks(block: Any, formulas: list[str], code: list[str]) -> None:
    if isinstance(block, dict):
        if block.get("type") == "equation-interline":
            formulas.append(block["content"].get("math_content") or "")
        elif block.get("type") == "code" and not block.get("inline"):
            code.append(block["content"].get("code_content") or "")
        elif block.get("t") == "equation-inline":
            formulas.append(block["c"])
        block = list(block.values())
    if isinstance(block, list):
        for part in block:
            read_blocks(part, formulas, code)
