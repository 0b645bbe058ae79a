r"""Formulas in a page's elements, as LaTeX: KaTeX, MathJax 2 to 4, MathML, data attributes, images.

<script type="math/tex; mode=display">x^2</script>                       ->  Formula("x^2", is_display=True, end)
<span class="katex"><math>…<annotation encoding="application/x-tex">x…   ->  Formula("x", is_display=False, end)

A formula that stands twice in the page, rendered and as its source, is read once: what was drawn is skipped.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass

from foresail.curate.extract.page import Page, read_page
from foresail.curate.extract.render.ahead import Ahead
from foresail.curate.extract.render.maths.asciimath import asciimath_to_latex
from foresail.curate.extract.render.maths.chtml import chtml_to_latex
from foresail.curate.extract.render.maths.image import image_latex
from foresail.curate.extract.render.maths.mathml import mathml_to_latex

# Worth a closer look: an element with one of these in its attributes.
HINTS = (
    *("katex", "math", "mjx", "latex", '"tex"', '"tex ', ' tex"', " tex ", "data-tex", "data-formula"),
    *("data-equation", "data-eq", "data-expr", "data-entry", "data-original-tex", "data-content-formula"),
    *(
        "codecogs",
        "mimetex",
        "texrendr",
        "tex2img",
        "/tex/",
        "equation",
        "cht=tx",
        "formula",
        "texify",
        "teximg",
    ),
    *("quicklatex", "sciweavers", "ql-img"),
)
SOURCES = (
    *(
        "data-latex",
        "data-tex",
        "data-math",
        "data-katex",
        "data-formula",
        "data-equation",
        "data-eq",
        "data-expr",
    ),
    *(
        "data-entry",
        "data-original-tex",
        "data-math-content",
        "data-latex-source",
        "data-tex-source",
        "data-content-formula",
    ),
)
TEX_LIKE = re.compile(r"\\[A-Za-z]+|[\^_]|\\[,;!{}]")
COMMAND = re.compile(r"\\[A-Za-z]{2,}")
SCRIPT = re.compile(r"[\^_]\{|[A-Za-z0-9)]\^[A-Za-z0-9({]|^[A-Za-z]_[A-Za-z0-9]$")
LINE_BREAK = re.compile(r"<br ?/?>")
DRAWN = re.compile(r"MathJax|MJXc|mjx-chtml|MathJax_SVG", re.IGNORECASE)
MATH_CLASS = re.compile(
    r'class="(?:[^"]* )?(?:math|maths|tex|latex|math-tex|math-inline|math-display|math-block|math-container'
    r'|equation|formula|tex2jax_process|mathjax_process|katex|katex-display|arithmatex|asciimath)[ "]'
)
DISPLAY = re.compile(
    r'display="(?:block|true)"|mode="display"|math-block|math-display|katex-display|MathJax_Display|math display'
    r'|mode=display|data-math-style="display"|display-math|mathml-display|equation',
    re.IGNORECASE,
)
BLOCKS = frozenset(["div", "p", "section", "center", "figure"])
DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
TEX_ENCODINGS = ("application/x-tex", "tex", "latex", "application/x-latex", "text/x-tex")


@dataclass(frozen=True, slots=True)
class Formula:
    latex: str
    is_display: bool
    end: int  # the first node after it


class FormulaReader:
    """`places`: the nodes that may be a formula, but for images."""

    def __init__(self, page: Page, hinted: set[int]) -> None:
        self.page = page
        names = frozenset(name for name in set(page.names) if name == "math" or name.endswith(":math"))
        by_name = names | {"script", "mjx-container"}
        self.hinted = hinted
        self.places = hinted | {at for at, name in enumerate(page.names) if name in by_name}
        self.maths = Ahead(page, names)
        self.drawings = Ahead(page, frozenset(["mjx-math"]))
        self.no_source_before = 0  # no drawn element before this node has its source in an attribute

    def anew(self) -> FormulaReader:
        """For another walk, from the page's begin."""
        reader = copy(self)
        reader.no_source_before = 0
        return reader

    def read(self, node: int) -> Formula | None:
        """The formula that this element is: "" for the drawn copy of one, None where it is something else."""
        page = self.page
        name = page.names[node]
        attributes = page.data[node]
        if name == "math" or name.endswith(":math"):
            return finish(math_element(page, node), bool(DISPLAY.search(attributes)), page.ends[node])
        if name == "script":
            return script(page, node)
        if name == "img":
            if node not in self.hinted and "\\" not in attributes and "{" not in attributes:
                return None
            latex = image_latex(page.attributes(node))
            return None if latex is None else finish(latex, "display" in attributes, page.ends[node])
        if name == "mjx-container":
            return self.drawn(node, 'display="true"' in attributes)
        values = page.attributes(node)
        classes = values.get("class", "")
        is_display = name in BLOCKS or bool(DISPLAY.search(attributes))
        for key in SOURCES:
            if (source := values.get(key, "").strip()) and (
                TEX_LIKE.search(source) or MATH_CLASS.search(attributes) or "tex" in classes
            ):
                return finish(source, is_display, page.ends[node])
        if "data-mathml" in values and not script_after(page, node):
            return finish(mathml_source(values["data-mathml"]), is_display, page.ends[node])
        if "katex" in classes:
            return self.katex(node, classes, is_display)
        if "MathJax_Preview" in classes:
            return Formula("", False, page.ends[node])
        if DRAWN.search(classes) and name in ("span", "div", "nobr"):
            return self.drawn(node, "MathJax_Display" in classes)
        if name != "code" and MATH_CLASS.search(attributes):
            return marked_text(page, node, is_display)
        return None

    def katex(self, node: int, classes: str, is_display: bool) -> Formula | None:
        if "katex-html" in classes:
            return Formula("", False, self.page.ends[node])
        math = self.maths.within(node)
        if math is None:
            return None
        return finish(math_element(self.page, math), is_display, self.page.ends[node])

    def drawn(self, node: int, is_display: bool) -> Formula | None:
        """What MathJax drew: its hidden MathML, or nothing where the source follows in a script."""
        page = self.page
        end = page.ends[node]
        if script_after(page, node):
            return Formula("", False, end)
        math = self.maths.within(node)
        if math is not None:
            is_display = is_display or bool(DISPLAY.search(page.data[math]))
            return finish(math_element(page, math), is_display, end)
        if (source := self.source_within(node)) is not None:
            return finish(source, is_display, end)
        drawing = self.drawings.within(node)
        if drawing is not None:
            return finish(chtml_to_latex(page, drawing), is_display, end)
        if end - node < 8 and is_tex(text := page.text(node).strip()):
            return finish(text, is_display, end)
        return None

    def source_within(self, node: int) -> str | None:
        """What an attribute of a drawn element says. The first has the whole formula, the others its parts."""
        page = self.page
        for at in range(max(node, self.no_source_before), page.ends[node]):
            if page.names[at] and "data-" in page.data[at]:
                if "data-mathml=" in page.data[at]:
                    return mathml_source(page.attribute(at, "data-mathml"))
                if "data-latex=" in page.data[at]:
                    return page.attribute(at, "data-latex")
        self.no_source_before = max(self.no_source_before, page.ends[node])
        return None


def finish(latex: str, is_display: bool, end: int) -> Formula:
    latex = LINE_BREAK.sub("\n", latex).strip()
    for opening, closing in DELIMITERS:
        if latex.startswith(opening) and latex.endswith(closing) and len(latex) > len(opening) + len(closing):
            inner = latex[len(opening) : -len(closing)]
            if closing not in inner:
                latex = inner.strip()
                is_display = is_display or opening in ("$$", "\\[")
                break
    return Formula(latex, is_display, end)


def math_element(page: Page, node: int) -> str:
    """The annotation, then the alternative text where that is TeX, then the MathML itself."""
    for at in range(node + 1, page.ends[node]):
        if (
            page.names[at].endswith("annotation")
            and page.attribute(at, "encoding").lower() in TEX_ENCODINGS
            and (source := page.text(at).strip())
        ):
            return source
    for key in ("alttext", "data-latex", "alt"):
        source = page.attribute(node, key)
        if source and COMMAND.search(source):
            return source
    return mathml_to_latex(page, node)


def mathml_source(source: str) -> str:
    page = read_page(source)
    for node, name in enumerate(page.names):
        if name == "math" or name.endswith(":math"):
            return math_element(page, node)
    return ""


def script(page: Page, node: int) -> Formula | None:
    kind = page.attribute(node, "type").lower()
    if not kind.startswith("math/"):
        return None
    source, is_display, end = page.text(node), "mode=display" in kind.replace(" ", ""), page.ends[node]
    source = (
        source.strip()
        .removeprefix("<![CDATA[")
        .removesuffix("]]>")
        .removeprefix("% <![CDATA[")
        .removesuffix("%")
    )
    if kind.startswith("math/mml"):
        return finish(mathml_source(source), is_display or bool(DISPLAY.search(source[:200])), end)
    if kind.startswith("math/asciimath"):
        return finish(asciimath_to_latex(source), is_display, end)
    return finish(source, is_display, end)


def script_after(page: Page, node: int) -> bool:
    """MathJax 2 leaves the source in a script behind what it drew, or behind the element around that."""
    names, data, ends = page.names, page.data, page.ends
    for _ in range(2):
        at, last = ends[node], ends[page.parents[node]] if page.parents[node] >= 0 else 0
        for _ in range(4):
            if at >= last:
                break
            if names[at] == "script" and "math/" in data[at]:
                return True
            if names[at] and not DRAWN.search(data[at]):
                break
            if not names[at] and data[at].strip():
                break
            at = ends[at]
        node = page.parents[node]
        if node <= 0 or not DRAWN.search(data[node]):
            break
    return False


def marked_text(page: Page, node: int, is_display: bool) -> Formula | None:
    """<span class="math">\\alpha</span>: the class says that the text is TeX."""
    end = page.ends[node]
    if end != node + 2 or page.names[node + 1]:
        return None
    text = page.data[node + 1].strip()
    has_delimiters = text.startswith(("\\(", "\\[", "$"))
    if has_delimiters:
        return finish(text, is_display or text.startswith(("\\[", "$$")), end)
    if is_tex(text) and "\\(" not in text and "$" not in text:
        return finish(text, is_display, end)
    return None


def is_tex(text: str) -> bool:
    return COMMAND.search(text) is not None or SCRIPT.search(text) is not None
