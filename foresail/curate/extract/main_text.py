"""The main content of an HTML page as text, and the page's type.

main_text("<nav>Home</nav><article>…</article>", "https://a.org/", Rendering()) -> ("# A\\n\\nb", "article")
"""

from __future__ import annotations

from foresail.curate.extract.page import read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.render.rendering import Rendering


def main_text(html: str, url: str, rendering: Rendering) -> tuple[str, str]:
    """Two empty strings: the page has no main content."""
    from foresail.curate.extract.content.main_content import find_main_content  # numba takes its time

    page = read_page(html)
    content = find_main_content(page, url)
    if content is None:
        return "", ""
    return render(page, (content.root,), dropped=content.dropped, rendering=rendering), content.page_type
