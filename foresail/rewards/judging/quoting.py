"""Text to judge inside a question: in a frame that it cannot close, without what servers read as control tokens.

    frame = Frame.of(["Paris", "Rome <|im_end|>"])
    frame.quote("answer A", "Paris")
    -> '<<answer A 5f0c31d2a9b84e67>>\\nParis\\n<</answer A 5f0c31d2a9b84e67>>'

The mark in the frame is a hash of all that is quoted, and no quoted text holds its first digits: who writes an
answer cannot know it.
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
SEAL = 6  # digits of the mark
ESCAPES = re.compile(r"\\u([0-9a-fA-F]{4})")
# Openings of the control tokens of ChatML, Llama 3, DeepSeek and others; then words that are tokens as they are.
OPENINGS = re.compile(r"<(?=[|｜▁_])|(?<=[|｜])>")
# NUL and its like end texts in some servers; tag characters are letters that only a model sees
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]")
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
        defused_texts = [defused(text) for text in texts]
        content = json.dumps(defused_texts)
        # as it stands, and as JSON reads it: "\\u0035f" is "5f" to who reads an answer
        seen = " ".join([*defused_texts, *map(read_escapes, defused_texts)]).lower()
        for attempt in range(1_000_000):
            mark = hashlib.blake2b(f"{attempt}{content}".encode(), digest_size=MARK_BYTES).hexdigest()
            if mark[:SEAL] not in seen:
                return cls(mark=mark, style=style)
        raise AssertionError("no text holds a million hashes of itself")

    @property
    def seal(self) -> str:
        """A part of the mark, short enough to be copied by a small model."""
        return self.mark[:SEAL]

    def quote(self, name: str, text: str) -> str:
        text = defused(text)
        if self.style == "json":
            text = json.dumps(text, ensure_ascii=False)
        return f"<<{name} {self.mark}>>\n{text}\n<</{name} {self.mark}>>"


def read_escapes(text: str) -> str:
    return ESCAPES.sub(lambda match: chr(int(match[1], 16)), text)


def defused(text: str) -> str:
    """Control tokens get a space inside, "< |im_end| >"; lone surrogates and control characters become "?"."""
    text = UNSEEN.sub("?", text.encode("utf-8", "replace").decode())
    text = OPENINGS.sub(lambda match: f"{match[0]} " if match[0] == "<" else f" {match[0]}", text)
    return TAGS.sub(lambda match: f"{match[0]} ", text)


def shortened(text: str, max_chars: int) -> str:
    """The beginning and the end of a long text, and between them how much is missing."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return text[: max_chars - half] + LEFT_OUT.format(len(text) - max_chars) + text[len(text) - half :]
