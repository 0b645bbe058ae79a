"""Text for a model between tags, and what it answers between tags.

enclose("How many?", "question") -> "<question>\\nHow many?\\n</question>"
read_tagged("<rewritten>Compute …</rewritten>", "rewritten") -> "Compute …"
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from foresail.records import Message, final_text


def enclose(text: str, tag: str) -> str:
    """The text cannot close its tag."""
    material = text.encode("utf-8", "replace").decode().replace(f"</{tag}>", f"< /{tag}>")
    return f"<{tag}>\n{material}\n</{tag}>"


def read_tagged(answer: str, tag: str) -> str:
    """What stands between the tags, behind the thinking; without tags the whole answer. "" if there are several."""
    final = final_text(answer)
    if final is None:
        return ""
    enclosed = re.findall(f"<{tag}>(.*?)</{tag}>", final, re.DOTALL)
    if len(enclosed) > 1:
        return ""
    return str(enclosed[0] if enclosed else final).strip()


def prompt_hash(messages: Sequence[Message]) -> str:
    """Of a question without its text: what `made` of a row names the template by."""
    content = "\x1f".join(message.content for message in messages)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
