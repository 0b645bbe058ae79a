"""Question, answers and votes of threads, as five kinds of forum write them."""

from __future__ import annotations

import pytest

from foresail.curate.extract.page import read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.thread import post_headings

EXCHANGE = """<div id="question" class="question" data-score="12"><p>Why?</p></div>
<div id="answer-7" class="answer accepted-answer" data-score="1"><p>So.</p></div>
<div id="answer-8" class="answer"><div itemprop="upvoteCount" data-value="-3">-3</div><p>No.</p></div>"""
REDDIT = """<div class=" thing id-a link " data-score="90" data-author="ann"><p>Look.</p></div>
<div class=" thing id-b comment" data-author="bob"><span class="score unvoted">42 points</span><p>Nice.</p>
<div class=" thing id-c comment"><span class="score unvoted">1 point</span><p>Yes.</p></div></div>"""
DISCOURSE = """<div id="post_1" class="topic-body crawler-post"><span itemprop="name">cy</span><p>Hi.</p><div>
<meta itemprop="interactionType" content="http://schema.org/LikeAction"><meta itemprop="userInteractionCount"
content="6"></div></div><div id="post_2" class="crawler-post"><span itemprop="name">di</span><p>Ho.</p></div>"""
XENFORO = """<article class="message message--post" data-author="eve"><p>One.</p></article>
<article class="message message--post" data-author="fay"><p>Two.</p></article>"""
PHPBB = """<div id="p1" class="post has-profile bg2"><a class="username">gus</a><p>One.</p></div>
<div id="p2" class="post has-profile bg1"><a class="username">hal</a><p>Two.</p></div>"""


@pytest.mark.parametrize(
    ("html", "headings", "with_authors"),
    [
        (EXCHANGE, ["Question (12 votes)", "Answer (1 vote, accepted)", "Answer (-3 votes)"], None),
        (
            REDDIT,
            ["Post (90 votes)", "Comment (42 points)", "Comment (1 point)"],
            ["Post by ann (90 votes)", "Comment by bob (42 points)", "Comment (1 point)"],
        ),
        (DISCOURSE, [], ["Post by cy (6 likes)", "Post by di"]),
        (XENFORO, [], ["Post by eve", "Post by fay"]),
        (PHPBB, [], ["Post by gus", "Post by hal"]),
        ("<div id='post_1' class='post'><p>A blog.</p></div>", [], []),
    ],
)
def test_headings_of_posts(html: str, headings: list[str], with_authors: list[str] | None) -> None:
    page = read_page(html)
    assert list(post_headings(page, authors=False).values()) == headings
    expected = headings if with_authors is None else with_authors
    assert list(post_headings(page, authors=True).values()) == expected


def test_posts_stay_in_their_order() -> None:
    page = read_page(EXCHANGE)
    text = render(page, headings=post_headings(page, authors=False))
    parts = [
        "## Question (12 votes)",
        "Why?",
        "## Answer (1 vote, accepted)",
        "So.",
        "## Answer (-3 votes)",
        "No.",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
