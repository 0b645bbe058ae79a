"""Posts of a thread: which is the question, which are answers, and how many votes each has.

post_headings(page, authors=False) -> {120: "Question (300 votes)", 480: "Answer (189 votes, accepted)"}

Read from the markup of StackExchange, old Reddit, Discourse, XenForo and phpBB. The numbers are nodes that hold a
post. Questions, answers and what has votes have a heading; others, and their likes, where authors are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.curate.extract.page import Page

MAYBE = re.compile(r'"question"|answer-|post|thing ')
KINDS = (  # of the element that holds a post
    ("Question", re.compile(r' id="question"')),
    ("Answer", re.compile(r' id="answer-\d+"')),
    ("Comment", re.compile(r' class=" ?thing [^"]*\bcomment\b')),
    ("Post", re.compile(r' class=" ?thing [^"]*\blink\b')),  # of Reddit
    (
        "Post",
        re.compile(r' class="[^"]*\bmessage--post\b|\bcrawler-post"| class="post has-profile| id="post_\d+"'),
    ),
)
BOXES = frozenset(["div", "article", "li", "section", "tr"])
NUMBER = re.compile(r"-?\d{1,9}")
LOOKED_AT = 600  # nodes of a post in which its votes and its author stand


def post_headings(page: Page, *, authors: bool) -> dict[int, str]:
    boxes = [node for node, name in enumerate(page.names) if name in BOXES and MAYBE.search(page.data[node])]
    posts = [(node, kind) for node in boxes if (kind := kind_of(page, node)) is not None]
    headings: dict[int, str] = {}
    for number, (node, kind) in enumerate(posts):
        end = page.ends[node]
        if number + 1 < len(posts):
            end = min(end, posts[number + 1][0])  # an answer below a question has votes of its own
        stop = min(end, node + LOOKED_AT)
        votes = read_votes(page, node, stop)
        if votes.endswith(("like", "likes")) and not authors:
            continue  # of a post that is neither question nor answer: no heading for that alone
        author = read_author(page, node, stop) if authors else ""
        notes = [votes] if votes else []
        if kind == "Answer" and "accepted-answer" in page.data[node]:
            notes.append("accepted")
        if votes or author or kind in ("Question", "Answer"):
            by = f" by {author}" if author else ""
            headings[node] = f"{kind}{by} ({', '.join(notes)})" if notes else f"{kind}{by}"
    return headings if len(headings) > 1 else {}


def kind_of(page: Page, node: int) -> str | None:
    attributes = page.data[node]
    return next((kind for kind, pattern in KINDS if pattern.search(attributes)), None)


def read_votes(page: Page, node: int, stop: int) -> str:
    """ "12 votes", "1 like", "42 points", or nothing."""
    score = page.attribute(node, "data-score")
    if NUMBER.fullmatch(score):
        return counted(int(score), "vote")
    for at in range(node, stop):
        attributes = page.data[at]
        if not page.names[at]:
            continue
        if 'itemprop="upvoteCount"' in attributes:
            if number := NUMBER.search(page.attribute(at, "data-value") or page.text(at)):
                return counted(int(number[0]), "vote")
        elif 'class="score unvoted"' in attributes or 'class="score likes"' in attributes:
            if number := NUMBER.search(page.text(at)):
                return counted(int(number[0]), "point")
        elif 'itemprop="userInteractionCount"' in attributes and is_of_likes(page, at):
            number = NUMBER.search(page.attribute(at, "content"))
            return counted(int(number[0]), "like") if number and int(number[0]) else ""
    return ""


def is_of_likes(page: Page, node: int) -> bool:
    """The counter of likes, not that of replies."""
    parent = page.parents[node]
    return any("LikeAction" in page.data[child] for child in page.children(parent))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number in (1, -1) else f"{number} {noun}s"


def read_author(page: Page, node: int, stop: int) -> str:
    for key in ("data-author", "data-author-username"):
        if name := page.attribute(node, key).strip():
            return name[:60]
    return next((name[:60] for name in author_texts(page, node, stop) if name), "")


def author_texts(page: Page, node: int, stop: int) -> Iterator[str]:
    for at in range(node + 1, stop):
        attributes = page.data[at]
        if page.names[at] and (
            'itemprop="name"' in attributes
            or 'class="username' in attributes
            or 'class="author ' in attributes
            or 'class="creator"' in attributes
        ):
            yield " ".join(page.text(at).split())
