"""A report as tables of text, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foresail.tokenizer.report.fertility import Fertility, relative_to

Results = Mapping[str, Mapping[str, Fertility]]
COLUMNS: tuple[tuple[str, str, Callable[[Fertility], float]], ...] = (
    ("tokens per character", ".3f", lambda fertility: fertility.per_character),
    ("bytes per token", ".2f", lambda fertility: fertility.bytes_per_token),
    ("share of tokens inside a character, or unknown", ".4f", lambda fertility: fertility.partial_share),
    ("share of texts that decode to themselves", ".3f", lambda fertility: fertility.exact_share),
)


def describe(results: Results, sizes: Mapping[str, int], base: str = "en") -> Iterator[str]:
    """Tables with a row for each tokenizer and a column for each language; the best of a column has a star."""
    for title, form, value in COLUMNS:
        figures = {
            name: {language: value(fertility) for language, fertility in by_language.items()}
            for name, by_language in results.items()
        }
        yield from table(title, form, figures, sizes, star=min if title.startswith("tokens") else None)
    if relative := {name: row for name, figures in results.items() if (row := relative_to(figures, base))}:
        yield from table(f"tokens of the same content, {base} = 1", ".2f", relative, sizes)


def table(
    title: str,
    form: str,
    figures: Mapping[str, Mapping[str, float]],
    sizes: Mapping[str, int],
    star: Callable[..., float] | None = None,
) -> Iterator[str]:
    languages = [*next(iter(figures.values()))]
    width = max(len(name) for name in figures) + 2
    best = {
        language: star(row[language] for row in figures.values()) if star else None for language in languages
    }
    yield f"{title}"
    yield f"{'':<{width}}{'size':>9}" + "".join(f"{language:>8}" for language in languages)
    for name, row in figures.items():
        cells = "".join(
            f"{format(row[language], form) + ('*' if row[language] == best[language] else ' '):>8}"
            for language in languages
        )
        yield f"{name:<{width}}{sizes[name]:>9,}{cells}"
    yield ""


def as_json(results: Results, sizes: Mapping[str, int], base: str = "en") -> dict[str, Any]:
    return {
        name: {
            "size": sizes[name],
            "languages": {
                language: {
                    "tokens": fertility.tokens,
                    "characters": fertility.characters,
                    "tokens_per_character": round(fertility.per_character, 5),
                    "bytes_per_token": round(fertility.bytes_per_token, 4),
                    "partial_share": round(fertility.partial_share, 6),
                    "exact_share": fertility.exact_share,
                    **(
                        {f"relative_to_{base}": round(relative[language], 4)}
                        if (relative := relative_to(by_language, base))
                        else {}
                    ),
                }
                for language, fertility in by_language.items()
            },
        }
        for name, by_language in results.items()
    }
