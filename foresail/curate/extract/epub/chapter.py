"""A chapter's XHTML as HTML that a parser of pages takes as it is meant.

chapter_html(b'<title/><p>one<a id="p7"/>two') -> '<title></title><p>one<a id="p7"></a>two'

In HTML, "<title/>" opens a title that never ends; in XHTML it is empty. Page numbers of the printed book go.
"""

from __future__ import annotations

import re

from foresail.curate.extract.page import VOID
from foresail.curate.read.encoding import decode_text

EMPTY = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*)?)/>")
DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.-]{1,40})""")
DECLARATION = re.compile(r"^\s*<\?xml[^>]*>")
MATH_PREFIX = re.compile(r"<(/?)(?:m|mml|mathml):(?=[a-z])")
PAGE_BREAK = re.compile(
    r"""<(span|a|div)\b(?=[^<>]{0,500}(?:epub:type="[^"]{0,100}\bpagebreak\b|role="doc-pagebreak"))[^<>]*>[^<]{0,20}</\1>"""
)


def chapter_html(content: bytes) -> str:
    declared = DECLARED.search(content[:1024])
    text, _ = decode_text(content, hint=declared[1].decode() if declared else "")
    text = MATH_PREFIX.sub(r"<\1", DECLARATION.sub("", text, count=1))
    return PAGE_BREAK.sub("", EMPTY.sub(close, text))


def close(tag: re.Match[str]) -> str:
    name, attributes = tag.groups()
    return tag[0] if name.lower() in VOID else f"<{name}{attributes}></{name}>"
