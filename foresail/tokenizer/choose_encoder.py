"""Which encoder writes a corpus: that of `tokenizers`, or gigatoken's where it gives the same ids.

    choose_encoder("auto", tokenizer, sample) -> ("gigatoken", None)
    choose_encoder("auto", tokenizer, sample) -> ("tokenizers", "gigatoken does not know this tokenizer (…)")

The ids of a sample of the texts and of texts made to be hard are compared. The encoder itself compares some of its
calls as well, so that a difference which the sample does not hold ends the run instead of passing into a corpus.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Literal

from foresail.tokenizer.documents import DocumentEncoder, EncoderName
from foresail.tokenizer.tokenizer import Tokenizer

EncoderChoice = Literal["tokenizers", "gigatoken", "auto"]
HARD_TEXTS, SEED = 500, 0
# Parts of hard texts: white space and controls, marks, joined emoji, digits, contractions, other scripts.
PARTS = (
    "a B the The ll 'll 'LL ’s 's don't _ -- ... 12 3.14 ０ ½ Ⅷ é e\u0301 ß İ ﬁ ก ที่ นี้ 漢字 한국 हिन्दी العربية "
    "😀 🇸🇬 👨\u200d👩\u200d👧 http://a.b/?c=d&e def\tf(x): x+=1 \\frac{1}{2}"
).split(" ")
SPACES = [
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "\x00",
    "\x1c",
    "\x85",
    "\xa0",
    "\u1680",
    "\u200b",
    "\u2028",
]


def choose_encoder(
    choice: EncoderChoice, tokenizer: Tokenizer, sample: Iterable[str], *, special_tokens: bool = False
) -> tuple[EncoderName, str | None]:
    """The encoder, and with `auto` the reason why it is not gigatoken; asked for by name, that is an error."""
    if choice == "tokenizers":
        return "tokenizers", None
    try:
        fast = DocumentEncoder(tokenizer, special_tokens=special_tokens, encoder="gigatoken")
        texts = [*sample, *hard_texts(tokenizer)]
        for begins in (True, False):
            for start in range(0, len(texts), 64):
                part = texts[start : start + 64]
                fast.check(part, [begins] * len(part))
    except (ImportError, ValueError) as error:
        if choice == "gigatoken":
            raise
        return "tokenizers", str(error)
    return "gigatoken", None


def hard_texts(tokenizer: Tokenizer) -> Iterator[str]:
    """Made of parts and spaces at random; the names of special tokens are among them."""
    drawn = random.Random(SEED)
    words = [*PARTS, *sorted(tokenizer.special_tokens())[:8], *sorted(tokenizer.vocabulary())[-8:]]
    for _ in range(HARD_TEXTS):
        length = drawn.randrange(1, 30)
        yield "".join(drawn.choice(words if drawn.random() < 0.6 else SPACES) for _ in range(length))
