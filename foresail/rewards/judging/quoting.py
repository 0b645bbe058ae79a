"""Text to judge inside a question: in a frame that it cannot close, without what servers read as control tokens.

    frame = Frame.of(["Paris", "Rome <|im_end|>"])
    frame.quote("answer A", "Paris")
    -> '<<answer A 5f0c31d2a9b84e67>>\\nParis\\n<</answer A 5f0c31d2a9b84e67>>'

The mark in the frame is a hash of all that is quoted: a text that holds the mark has another one. Nobody who writes
an answer can know it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Style = Literal["frame", "json"]
MARK_BYTES = 8
# Openings of the control tokens of ChatML, Llama 3, DeepSeek and others; then words that are tokens as they are.
OPENINGS = re.compile(r"<(?=[|｜▁_])|(?<=[|｜])>")
TAGS = re.compile(
    r"<(?=/?(?:s|bos|eos|pad|unk|mask|sep|cls|think|thinking|reasoning|tool_call|tool_response|start_of_turn|"
    r"end_of_turn|start_of_image|end_of_text|begin_of_text|extra_id_\d+|unused\d+|0x[0-9a-f]{2})>)|"
    r"\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK|BOS|EOS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
LEFT_OUT = "\n[… {} characters are left out here …]\n"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """`style`: frame quotes a text as it is; json as a JSON string on one line, its line breaks as \\n."""

    mark: str
    style: Style = "frame"

    @classmethod
    def of(cls, texts: Sequence[str], style: Style = "frame") -> Frame:
        content = json.dumps([defused(text) for text in texts])
        for attempt in range(1_000_000):
            mark = hashlib.blake2b(f"{attempt}{content}".encode(), digest_size=MARK_BYTES).hexdigest()
            if mark not in content.lower():
                return cls(mark=mark, style=style)
        raise AssertionError("no text holds a million hashes of itself")

    @property
    def seal(self) -> str:
        """A part of the mark, short enough to be copied by a small model."""
        return self.mark[:6]

    def quote(self, name: str, text: str) -> str:
        text = defused(text)
        if self.style == "json":
            text = json.dumps(text, ensure_ascii=False)
        return f"<<{name} {self.mark}>>\n{text}\n<</{name} {self.mark}>>"


def defused(text: str) -> str:
    """Control tokens get a space inside, lone surrogates become question marks: "< |im_end| >"."""
    text = text.encode("utf-8", "replace").decode()
    text = OPENINGS.sub(lambda match: f"{match[0]} " if match[0] == "<" else f" {match[0]}", text)
    return TAGS.sub(lambda match: f"{match[0]} ", text)


def shortened(text: str, max_chars: int) -> str:
    """The beginning and the end of a long text, and between them how much is missing."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return text[: max_chars - half] + LEFT_OUT.format(len(text) - max_chars) + text[len(text) - half :]
