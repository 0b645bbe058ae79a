"""Formulas and code blocks of pages: how many the extraction keeps, beside trafilatura and resiliparse.

python benchmarks/curate/maths_and_code.py                  # needs ../shared/data/html, trafilatura, resiliparse
python benchmarks/curate/maths_and_code.py --bench FOLDER   # and llm-webkit's bench/ (see maths_and_code_golds.py)
python benchmarks/curate/maths_and_code.py --missing        # and what ours lacks

A formula counts
- `verbatim`: its LaTeX stands in the text, up to white space;
- `same`: the same up to what TeX prints alike: braces, \\left and \\right, \\le and \\leq, × and \\times;
- `marked` (ours alone): between dollars, and nothing else between them, up to `same`.
A code block counts
- `indented`: its lines stand in the text one after the other, each with its indentation; all may be indented
  further, as in a list; empty lines do not matter; a block of one line may stand inside of one;
- `words`: it stands in the text up to white space.

What the gold files have that is plainly broken, or no code, is counted apart.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from maths_and_code_golds import Gold, bench_pages, fixtures

from foresail.curate.extract.main_text import main_text
from foresail.curate.extract.render.maths.symbols import SYMBOLS
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.whole_page import page_text

DATA = Path(__file__).parents[3] / "shared/data/html"
SPACE = re.compile(r"(?:\s|\u200b|~|\\[,;:!> ]|\\quad|\\qquad|\\enspace)+")
LAYOUT = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|nolimits|mathstrut|bigl?|bigr?|Bigl?|Bigr?)(?![A-Za-z])\.?|[{}]"
    r"|\\(?:mathrm|operatorname|text|textrm|mbox|mathit)(?![A-Za-z])"
)
ALIKE = {
    "\\leq": "\\le",
    "\\geq": "\\ge",
    "\\neq": "\\ne",
    "\\rightarrow": "\\to",
    "\\dots": "\\ldots",
    "\\lbrace": "\\{",
    "\\rbrace": "\\}",
    "\\vert": "|",
    "\\lvert": "|",
    "\\rvert": "|",
    "\\mid": "|",
    "\\prime": "'",
    "\\infin": "\\infty",
    "\\stackrel": "\\overset",
    "\\tfrac": "\\frac",
    "\\dfrac": "\\frac",
    "\\lt": "<",
    "\\gt": ">",
    "\\varnothing": "\\emptyset",
    "\\land": "\\wedge",
    "\\lor": "\\vee",
    "\\implies": "\\Longrightarrow",
    "\\aligned": "\\matrix",
}
COMMAND = re.compile(r"\\[A-Za-z]+")
MARKED = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$|(\\begin\{(align\*?)\}.*?\\end\{\4\})", re.DOTALL)
BRACKETS = {"p": "()", "b": "[]", "v": "||", "B": ("\0", "\1")}
QUOTE = re.compile(r"^ *(?:> ?)+", re.MULTILINE)
Extractor = Callable[[str], str]


def without_space(text: str) -> str:
    return re.sub(r"[\s\u200b]+", "", text)


def canonical(text: str) -> str:
    """What is left of LaTeX when spellings of one print are one."""
    text = "".join(
        SYMBOLS.get(char, char) if not char.isascii() else char
        for char in text.replace("\\\\", "\2").replace("\\{", "\0").replace("\\}", "\1")
    )
    text = COMMAND.sub(lambda match: ALIKE.get(match[0], match[0]), LAYOUT.sub("", text))
    text = re.sub(r"\\begin([pbvB])matrix", lambda match: BRACKETS[match[1]][0] + "\\beginmatrix", text)
    text = re.sub(r"\\end([pbvB])matrix", lambda match: "\\endmatrix" + BRACKETS[match[1]][1], text)
    text = re.sub(r"\\begin(?:array(?:[lcr|]|\s)*|aligned|align\*?|matrix)", r"\\rows", text)
    text = re.sub(r"\\end(?:array|aligned|align\*?|matrix)", r"\\endrows", text)
    return SPACE.sub("", text)


def rivals() -> dict[str, Extractor]:
    from resiliparse.extract.html2text import extract_plain_text

    trafilatura = import_module("trafilatura")

    def by_trafilatura(**settings: object) -> Extractor:
        return lambda html: trafilatura.extract(html, **settings) or ""

    return {
        "trafilatura": by_trafilatura(),
        "trafilatura, recall": by_trafilatura(favor_recall=True),
        "trafilatura, Markdown": by_trafilatura(
            output_format="markdown", include_formatting=True, favor_recall=True
        ),
        "resiliparse, main": lambda html: extract_plain_text(
            html, main_content=True, preserve_formatting=True
        ),
        "resiliparse, all": lambda html: extract_plain_text(html, preserve_formatting=True),
    }


def ours() -> dict[str, Extractor]:
    return {
        "ours": lambda html: page_text(html, Rendering()),
        "ours, main content": lambda html: main_text(html, "", Rendering())[0],
        "ours, plain": lambda html: page_text(html, Rendering(markup=False)),
    }


def code_lines(text: str) -> list[str]:
    text = text.replace("\xa0", " ").replace("\u200b", "").expandtabs(4)
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def holds_lines(lines: list[str], block: list[str]) -> bool:
    """Whether the block's lines follow one another, all further to the right by the same."""
    first = block[0]
    if len(block) == 1:
        return any(first in line for line in lines)
    for start, line in enumerate(lines[: len(lines) - len(block) + 1]):
        if line.endswith(first):
            before = line[: len(line) - len(first)]
            if all(lines[start + at] == before + part for at, part in enumerate(block)):
                return True
    return False


def dedented(block: list[str]) -> list[str]:
    least = min(len(line) - len(line.lstrip()) for line in block)
    return [line[least:] for line in block]


def score(gold: Gold, text: str) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter(
        formulas=len(gold.formulas), code=len(gold.code), broken=len(gold.broken) + len(gold.broken_code)
    )
    missing = []
    solid, plain = without_space(text), canonical(text)
    marks = {
        canonical(display or inline or align).rstrip(".,;")
        for display, inline, align, _ in MARKED.findall(QUOTE.sub("", text))
    }
    for formula in gold.formulas:
        same = canonical(formula)
        counts["verbatim"] += without_space(formula) in solid
        counts["same"] += same in plain
        counts["marked"] += same.rstrip(".,;") in marks
        if same not in plain or same.rstrip(".,;") not in marks:
            missing.append(f"{'formula' if same not in plain else 'mark'}: {formula}")
    counts["broken verbatim"] += sum(without_space(formula) in solid for formula in gold.broken)
    lines = code_lines(text)
    for block in gold.code:
        wanted = dedented(code_lines(block))
        indented = holds_lines(lines, wanted)
        counts["indented"] += indented
        counts["words"] += without_space(block).replace("\xa0", "") in solid
        if not indented:
            missing.append(f"code: {block}")
    return counts, missing


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the fixtures")
    parser.add_argument("--bench", type=Path, help="llm-webkit's folder bench/")
    parser.add_argument("--missing", action="store_true", help="print what ours lacks")
    parser.add_argument("--ours", action="store_true", help="without the rivals")
    parser.add_argument("--page", help="only pages with this in their name")
    arguments = parser.parse_args()
    golds = fixtures(arguments.data) + (bench_pages(arguments.bench) if arguments.bench else [])
    golds = [gold for gold in golds if not arguments.page or arguments.page in gold.name]
    totals: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    seconds: dict[str, float] = defaultdict(float)
    for name, extract in (ours() if arguments.ours else ours() | rivals()).items():
        for gold in golds:
            began = time.process_time()
            text = extract(gold.html)
            seconds[name] += time.process_time() - began
            counts, missing = score(gold, text)
            totals[name][gold.set] += counts
            totals[name]["all"] += counts
            if arguments.missing and name == "ours":
                for entry in missing:
                    print(f"{gold.set} {gold.name} {entry!r}"[:400])
    print(json.dumps(report(totals, seconds, len(golds)), indent=1))


def report(
    totals: dict[str, dict[str, Counter[str]]], seconds: dict[str, float], pages: int
) -> dict[str, object]:
    figures: dict[str, object] = {"pages": pages}
    for name, sets in totals.items():
        rows = {}
        for set, counts in sets.items():
            formulas = {key: share(counts[key], counts["formulas"]) for key in ("verbatim", "same", "marked")}
            code = {key: share(counts[key], counts["code"]) for key in ("indented", "words")}
            rows[set] = {
                "formulas": counts["formulas"],
                **(
                    formulas
                    if name.startswith("ours")
                    else {key: formulas[key] for key in ("verbatim", "same")}
                ),
                "broken": counts["broken"],
                "code": counts["code"],
                **code,
            }
        figures[name] = {**rows, "CPU ms a page": round(1000 * seconds[name] / pages, 1)}
    return figures


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


if __name__ == "__main__":
    main()
