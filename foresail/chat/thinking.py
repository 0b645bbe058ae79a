"""Thinking as a part of its own, and back to the text as the model wrote it.

    split_thinking("<think>3?</think>\\n\\n4") -> Thinking(thought="3?", text="4", seal="…")
    join_thinking("3?", "4", seal)            -> "<think>3?</think>\\n\\n4"

A client that sends a response back must send the same text: only then does the conversation go on where it was.
So the tags and the white space around them travel as a seal, in the field that the wire has for such things
(Anthropic's `signature`, OpenAI's `encrypted_content`).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"
USUAL = ("<think>\n", "\n</think>\n\n")  # of a thought that has lost its seal


class Thinking(NamedTuple):
    """`text` follows the thought; it is empty where the thinking has no end."""

    thought: str
    text: str
    seal: str


def split_thinking(content: str) -> Thinking | None:
    """None for a response without thinking. A prompt may have opened it: "3?</think>4" has a thought, too."""
    end = content.rfind(CLOSE)
    start = spaces_before(content, 0)
    is_open = content.startswith(OPEN, start)
    if end < 0 and not is_open:
        return None
    stop, after = (len(content), len(content)) if end < 0 else (end, end + len(CLOSE))
    if is_open:
        start = spaces_before(content, start + len(OPEN))
    stop = len(content[:stop].rstrip())
    start, after = min(start, stop), spaces_before(content, after)
    return Thinking(content[start:stop], content[after:], seal_of(content[:start], content[stop:after]))


def spaces_before(content: str, place: int) -> int:
    """Where the white space from `place` on ends."""
    behind = content[place:]
    return place + len(behind) - len(behind.lstrip())


def join_thinking(thought: str, text: str, seal: str) -> str:
    opening, closing = read_seal(seal) or USUAL
    return f"{opening}{thought}{closing}{text}"


def seal_of(opening: str, closing: str) -> str:
    return base64.b64encode(json.dumps([opening, closing]).encode()).decode()


def read_seal(seal: str) -> tuple[str, str] | None:
    """None for what is no seal of ours, such as another server's signature."""
    try:
        tags = json.loads(base64.b64decode(seal, validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return None
    if not isinstance(tags, list) or len(tags) != 2 or not all(isinstance(tag, str) for tag in tags):
        return None
    opening, closing = tags
    is_ours = opening.strip() in ("", OPEN) and closing.strip() in ("", CLOSE)
    return (opening, closing) if is_ours else None
