"""The main content of an HTML page as text, and the page's type.

main_text("<nav>Home</nav><article>…</article>", "https://a.org/", Rendering()) -> ("# A\\n\\nb", "article")
"""

from __future__ import annotations

from foresail.curate.extract.page import read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.render.marks import find_marks
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.thread import post_headings


def main_text(html: str, url: str, rendering: Rendering) -> tuple[str, str]:
    """Two empty strings: the page has no main content."""
    # numba takes its time
    from foresail.curate.extract.content.main_content import find_main_content
    from foresail.curate.extract.kept_code import keep_code

    page = read_page(html)
    content = find_main_content(page, url)
    if content is None:
        return "", ""
    marks = find_marks(page)
    content = keep_code(page, content, marks)
    headings = post_headings(page, authors=rendering.authors)
    text = render(
        page, (content.root,), dropped=content.dropped, headings=headings, rendering=rendering, marks=marks
    )
    return text, content.page_type
