"""Code and formulas come back where what stands beside them stays."""

from __future__ import annotations

import random

import pytest

from foresail.curate.extract.content.main_content import MainContent
from foresail.curate.extract.kept_code import keep_code
from foresail.curate.extract.page import Page, read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.render.marks import find_marks

LINES = "".join(
    f'<tr><td class="lineno">{n}</td><td class="code"><pre>x = {n}</pre></td></tr>' for n in range(1, 6)
)
PARTS = (
    "<p>word</p>",
    "<pre>x = 1\n  y</pre>",
    "<p>as <span class='math'>\\(a^2\\)</span> is</p>",
    "<math><mi>b</mi></math>",
    f"<table class='highlight'>{LINES}</table>",
    "<div><code>a</code><br><code>  b</code></div>",
    "<aside><pre>z</pre></aside>",
    "<ul><li>one<li>two</ul>",
)


def elements(page: Page, name: str) -> list[int]:
    return [node for node, other in enumerate(page.names) if other == name]


def kept_text(page: Page, root: int, dropped: frozenset[int]) -> str:
    return render(page, (root,), dropped=dropped)


def kept(html: str, dropped: list[tuple[str, int]], root: str = "body") -> str:
    """The text after `dropped` elements, by name and number, were left out and code came back."""
    page = read_page(html)
    content = MainContent(
        elements(page, root)[0], frozenset(elements(page, name)[n] for name, n in dropped), "article"
    )
    after = keep_code(page, content, find_marks(page))
    return kept_text(page, after.root, after.dropped)


@pytest.mark.parametrize(
    "block", ["<pre>x = 1\n  y</pre>", "<div>$$x = 1$$</div>", "<p>where \\(x = 1\\)</p>"]
)
def test_what_stands_behind_a_paragraph_that_stays_comes_back(block: str) -> None:
    name = block[1:].partition(">")[0]
    number = 1 if name == "p" else 0
    assert "x = 1" in kept(f"<p>Set it so:</p>{block}<h2>Next</h2>", [(name, number)])
    assert "x = 1" in kept(f"<div><p>Set it so:</p></div><section>{block}</section>", [("section", 0)])


def test_what_stands_elsewhere_stays_away() -> None:
    page = (
        "<p>Text.</p><aside><h4>Tips</h4><p>Many words that do not belong here.</p><pre>x = 1</pre></aside>"
    )
    assert "x = 1" not in kept(page, [("aside", 0)])


def test_code_outside_of_the_root_comes_back_alone() -> None:
    page = "<div><nav>Home</nav><main><p>Set it so:</p></main><pre>x = 1</pre><footer>Imprint</footer></div>"
    text = kept(page, [], root="main")
    assert text == "Set it so:\n\n```\nx = 1\n```"


def test_a_listing_with_lines_left_out_is_whole() -> None:
    page = f"<p>Text</p><table class='highlight'><tbody>{LINES}</tbody></table>"
    whole = "\n".join(f"x = {n}" for n in range(1, 6))
    assert whole in kept(page, [("tr", 1), ("tr", 4)])
    assert whole in kept(page, [], root="tbody")


def test_nothing_that_stays_is_lost() -> None:
    """Random pages, and random parts of them left out."""
    chance = random.Random(5)
    for _ in range(300):
        html = ""
        for _ in range(chance.randrange(1, 12)):
            part = chance.choice(PARTS)
            html = f"<div>{html}</div>{part}" if chance.random() < 0.3 else html + part
        page = read_page(html)
        inside = range(elements(page, "body")[0], len(page.names))
        root = chance.choice([node for node in inside if page.names[node]])
        below = [node for node in range(root + 1, page.ends[root]) if page.names[node]]
        dropped = frozenset(chance.sample(below, min(len(below), chance.randrange(4))))
        after = keep_code(page, MainContent(root, dropped, "article"), find_marks(page))
        assert after.root <= root < page.ends[after.root]
        before_words, words = (
            texts(page, place, left_out) for place, left_out in ((root, dropped), (after.root, after.dropped))
        )
        assert before_words <= words


def texts(page: Page, root: int, dropped: frozenset[int]) -> set[int]:
    stays, node = set(), root
    while node < page.ends[root]:
        if node in dropped:
            node = page.ends[node]
            continue
        if not page.names[node]:
            stays.add(node)
        node += 1
    return stays
