"""What a row asks: the last user message of a problem, the first of a conversation; and the row with another one.

asked(document) -> "How many clips …?"
with_asked(document, "In April …") -> the row with it
options_of("Which? A) red B) blue") -> {"A": "red", "B": "blue"}
"""

from __future__ import annotations

import re
from typing import Any

from foresail.curate.document import Document
from foresail.curate.rewriting.spans import fixed_spans
from foresail.curate.rows.conversation import message_row
from foresail.curate.rows.row import MESSAGES
from foresail.data.chats.messages import to_messages
from foresail.data.problems.problems import PROMPT_KEYS, find_key
from foresail.data.rows import Row

# (A) and A) anywhere, the others where a line begins
OPTION = re.compile(
    r"(?:^|(?<=[\s;,]))(?:\(([A-J])\)|([A-J])\))\s*(?=\S)|^[ \t]*[(*]{0,3}([A-Ja-j])[.)、:：][ \t*]*(?=\S)",
    re.MULTILINE,
)
NAMED = re.compile(r"\A\(?([A-Ja-j])\)?\Z")


def asked(document: Document) -> str:
    """Empty where nobody asks anything."""
    assert document.row is not None
    messages, place = asked_messages(document)
    return messages[place]["content"] if place is not None else ""


def with_asked(document: Document, text: str) -> dict[str, Any]:
    assert document.row is not None
    messages, place = asked_messages(document)
    assert place is not None
    key = MESSAGES if MESSAGES in document.row else prompt_key(document)
    if isinstance(document.row[key], str):
        return document.row | {key: text}
    changed = [message | {"content": text} if n == place else message for n, message in enumerate(messages)]
    return document.row | {key: changed}


def asked_messages(document: Document) -> tuple[list[dict[str, Any]], int | None]:
    """The messages, and which of them asks."""
    assert document.row is not None
    messages = row_messages(document)
    if MESSAGES not in document.row and isinstance(document.row[prompt_key(document)], str):
        return messages, 0
    places = range(len(messages)) if MESSAGES in document.row else range(len(messages) - 1, -1, -1)
    asks = (n for n in places if messages[n]["role"] == "user" and messages[n]["content"].strip())
    return messages, next(asks, None)


def row_messages(document: Document) -> list[dict[str, Any]]:
    """Of a conversation all messages, of a problem those of its prompt."""
    assert document.row is not None
    if MESSAGES in document.row:
        return [*document.row[MESSAGES]]
    prompt = document.row[prompt_key(document)]
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [*map(message_row, to_messages(prompt, document.id))]


def prompt_key(document: Document) -> str:
    assert document.row is not None
    key = find_key(Row(place=document.id, columns=document.row), PROMPT_KEYS)
    assert key is not None, "a row without a prompt is no problem"
    return key


# Multiple choice.


def options_of(text: str) -> dict[str, str]:
    """Labels from the first letter on, with their texts up to the end of the line; empty if there are none."""
    options: dict[str, str] = {}
    formulas = [span for span in fixed_spans(text) if span.kind in ("latex", "fence", "code")]
    marks = [
        (match, (match[1] or match[2] or match[3]).upper())
        for match in OPTION.finditer(text)
        if not any(span.start <= match.start() < span.end for span in formulas)
    ]
    start = max((n for n, (_, letter) in enumerate(marks) if letter == "A"), default=None)
    if start is None:
        return {}
    run = marks[start:]
    for number, (match, letter) in enumerate(run):
        if letter != chr(ord("A") + number):
            break
        follows = run[number + 1] if number + 1 < len(run) else None
        in_order = follows is not None and follows[1] == chr(ord("A") + number + 1)
        end = follows[0].start() if follows is not None and in_order else len(text)
        value = text[match.end() : end]
        options[letter] = " ".join((value if in_order else value.split("\n")[0]).split()).strip(" ,;")
    return options if len(options) > 1 else {}


def changed_option(before: str, after: str) -> str:
    """The first option that is not there any more or says something else, or ""."""
    now = options_of(after)
    for letter, text in options_of(before).items():
        if now.get(letter, "").casefold().rstrip(".") != text.casefold().rstrip("."):
            return f"{letter}) {text[:60]} became {now.get(letter, 'nothing')[:60]}"
    return ""


def is_letter(answer: str) -> bool:
    return NAMED.match(answer.strip()) is not None
