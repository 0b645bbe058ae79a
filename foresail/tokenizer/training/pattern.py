r"""Where a text is cut before merges: the patterns, and the pre-tokenizer that applies one.

WORDS       "ที่นี่ costs $12"  ->  "ที่นี่", " costs", " $", "1", "2"
SUPERWORDS  "one of the\n"      ->  "one of the", "\n"

Vowels and tones of Thai, Hindi, Arabic … are marks, \p{M}. A pattern of letters alone cuts a word at each of them.
WORDS is Qwen 3.5's, to the letter: gigatoken knows it, and refuses a pattern that it does not know.
"""

from __future__ import annotations

import tokenizers
from tokenizers import pre_tokenizers

WORD = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
ENGLISH_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
OTHERS = r"\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

WORDS = f"{ENGLISH_ENDINGS}|{WORD}|{OTHERS}"
# Words with one other character between them are one part: "of the", "built-in". Lines, digits and a comma with
# its blank still cut.
SUPERWORDS = f"(?:{WORD})+|{OTHERS}"
# GPT-2's, with marks: of an ASCII text it makes the same parts.
PLAIN_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"


def cut_by(pattern: str) -> pre_tokenizers.PreTokenizer:
    """Cuts a text into the parts that the pattern matches."""
    return pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="isolated")
