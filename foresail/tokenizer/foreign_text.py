"""Cleans untrusted text for a prompt: a tool's result, a user's message.

    ForeignText(core, unknown).clean("<|im_end|>") -> "< |im_end|>"

Special tokens in it lose their meaning, and characters that the tokenizer does not know become a question mark, so
any text can be encoded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import tokenizers

CONTROL = ("<|", "<｜")  # how control tokens of most tokenizers begin
STAND_INS = ("?", " ", "")  # for a character that is not known: the first that is


class UnwritableText(ValueError):
    """A chat template refuses a message's text, but would accept another text."""


class ForeignText:
    """Cleans text for one tokenizer. `unknown` is the id of its unknown token."""

    def __init__(self, core: tokenizers.Tokenizer, unknown: int | None) -> None:
        self.core, self.unknown = core, unknown
        # Some tokenizers do not say of `<｜User｜>` that it is special, so all of that form count.
        added = core.get_added_tokens_decoder().items()
        control = {id: token for id, token in added if token.special or token.content.startswith(CONTROL)}
        self.specials = tuple(token.content for token in control.values())
        # The tokenizer searches these in normalised text, so that other spellings become them as well.
        folded = {id for id, token in control.items() if token.normalized and len(token.content.strip()) > 1}
        self.folded = frozenset(folded - {unknown} if core.normalizer is not None else ())

    def clean(self, text: str) -> str:
        return with_known_characters(self.without_specials(text), self.core, self.unknown)

    def without_specials(self, text: str) -> str:
        return without_folded_specials(without_specials(text, self.specials), self.core, self.folded)


def without_specials(text: str, specials: Sequence[str]) -> str:
    """Break special tokens; lone surrogates become question marks."""
    text = text.encode(errors="replace").decode()
    # A token of one character or of white space ends no turn, and a space inside would not break it.
    longer = [token for token in specials if len(token.strip()) > 1]
    while present := [token for token in longer if token in text]:  # again: breaking one may form another
        for token in present:
            text = text.replace(token, broken(token))
    return text


def broken(token: str) -> str:
    """With a space behind its first visible character: broken("<|im_end|>") -> "< |im_end|>"."""
    first = len(token) - len(token.lstrip()) + 1
    return f"{token[:first]} {token[first:]}"


def without_folded_specials(text: str, core: tokenizers.Tokenizer, specials: Collection[int]) -> str:
    """Without what the tokenizer's normaliser makes a special token: "＜|im_end|＞" under NFKC."""
    is_first = True
    while specials and (spans := spans_of(specials, text, core)):
        others = [broken(text[start:end]) if is_first else "" for start, end in spans]
        text, is_first = with_others(text, spans, others), False  # later rounds shorten the text, so it ends
    return text


def with_known_characters(text: str, core: tokenizers.Tokenizer, unknown: int | None) -> str:
    """with_known_characters("4 €", …) -> "4 ?" where the tokenizer knows no €; `unknown` stands for all such."""
    if unknown is None:
        return text
    stand_in = next(sign for sign in STAND_INS if unknown not in ids_of(sign, core))
    while spans := spans_of((unknown,), text, core):
        text = with_others(text, spans, [stand_in] * len(spans))
        stand_in = ""  # later rounds shorten the text, so it ends
    return text


def ids_of(text: str, core: tokenizers.Tokenizer) -> list[int]:
    ids: list[int] = core.encode(text, add_special_tokens=False).ids
    return ids


def spans_of(ids: Collection[int], text: str, core: tokenizers.Tokenizer) -> list[tuple[int, int]]:
    """Where in the text tokens with these ids come from."""
    encoding = core.encode(text, add_special_tokens=False)
    both = zip(encoding.ids, encoding.offsets, strict=True)
    return sorted({(start, end) for token, (start, end) in both if token in ids and end > start})


def with_others(text: str, spans: Sequence[tuple[int, int]], others: Sequence[str]) -> str:
    """The text with one of the others in the place of each span."""
    pieces, end = [], 0
    for (start, behind), other in zip(spans, others, strict=True):
        pieces += [text[end:start], other]
        end = behind
    return "".join([*pieces, text[end:]])
