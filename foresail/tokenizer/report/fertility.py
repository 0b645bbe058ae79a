"""How many tokens a tokenizer spends on texts, by language.

fertility("hello world", 2 tokens):  tokens per character 2 / 11, bytes per token 5.5
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foresail.tokenizer.report.rival import Rival


@dataclass(frozen=True, kw_only=True)
class Fertility:
    """Counts over the texts of one language. `partial`: tokens inside a character, and unknown ones."""

    tokens: int
    characters: int
    bytes: int
    partial: int
    exact: int
    texts: int

    @property
    def per_character(self) -> float:
        return self.tokens / self.characters

    @property
    def bytes_per_token(self) -> float:
        return self.bytes / self.tokens

    @property
    def partial_share(self) -> float:
        return self.partial / self.tokens

    @property
    def exact_share(self) -> float:
        """Texts that decode to themselves."""
        return self.exact / self.texts


def measure(rival: Rival, texts: Sequence[str]) -> Fertility:
    """Special tokens that the texts may name are plain text."""
    rival.core.encode_special_tokens = True
    encodings = rival.core.encode_batch_fast([*texts], add_special_tokens=False)
    return Fertility(
        tokens=sum(len(encoding.ids) for encoding in encodings),
        characters=sum(map(len, texts)),
        bytes=sum(len(text.encode()) for text in texts),
        partial=sum(token in rival.partial for encoding in encodings for token in encoding.ids),
        exact=sum(
            rival.core.decode(encoding.ids, skip_special_tokens=False) == text
            for text, encoding in zip(texts, encodings, strict=True)
        ),
        texts=len(texts),
    )


def measure_all(
    rivals: Sequence[Rival], languages: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Fertility]]:
    """By tokenizer, then language."""
    if empty := [language for language, texts in languages.items() if not any(texts)]:
        raise ValueError(f"{empty[0]} has no text; name files that hold some")
    names = [rival.name for rival in rivals]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"two tokenizers are called {twice[0]}; rename a folder, the report would mix them up"
        )
    return {
        rival.name: {language: measure(rival, texts) for language, texts in languages.items()}
        for rival in rivals
    }


def relative_to(by_language: Mapping[str, Fertility], language: str = "en") -> dict[str, float]:
    """Tokens of the same content, in English ones: relative_to(…)["th"] -> 1.4; empty without that language."""
    if language not in by_language:
        return {}
    base = by_language[language].tokens
    return {name: fertility.tokens / base for name, fertility in by_language.items()}
