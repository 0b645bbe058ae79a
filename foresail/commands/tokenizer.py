"""`foresail tokenizer …`: train a tokenizer for several languages, and compare tokenizers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.commands.options import Overrides
from foresail.commands.transplant import transplant

if TYPE_CHECKING:
    from foresail.tokenizer.training.recipe import Group

tokenizer_app = typer.Typer(
    help="Train tokenizers, compare them, and give a model another one.", no_args_is_help=True
)
tokenizer_app.command()(transplant)


@tokenizer_app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="TOML: groups of languages, size of the vocabulary")],
    overrides: Overrides = None,
) -> None:
    """Sub-tokenizers of language groups, merged into one of an exact size without unreachable tokens."""
    from foresail.recipe.reading.load import load_table
    from foresail.tokenizer.training.build import build
    from foresail.tokenizer.training.recipe import TokenizerRecipe

    loaded = load_table(recipe, overrides or [], TokenizerRecipe)
    trained = build(loaded, group_texts, note=print)
    trained.tokenizer.save(loaded.out)
    counts = ", ".join(f"{name} {count:,}" for name, count in trained.pieces.items())
    print(f"{loaded.out}: {trained.tokenizer.vocab_size:,} tokens; pieces: {counts}")


@tokenizer_app.command()
def report(
    tokenizers: Annotated[
        list[Path], typer.Argument(help="folders, tokenizer.json or .tiktoken files; .xz and .gz too")
    ],
    texts: Annotated[
        list[Path], typer.Option(help="a file for each language, named as en.txt is, or a folder of them")
    ],
    base: Annotated[str, typer.Option(help="language that the others are compared with")] = "en",
    out: Annotated[Path | None, typer.Option(help="folder for report.json and fertility.png")] = None,
) -> None:
    """Tokens per character, by language, and relative to English where the texts are parallel."""
    import json

    from foresail.runlog.atomic import write_text
    from foresail.tokenizer.report.fertility import measure_all
    from foresail.tokenizer.report.plot import draw
    from foresail.tokenizer.report.rival import open_rival
    from foresail.tokenizer.report.tables import as_json, describe

    languages = language_texts(texts)
    rivals = [open_rival(path) for path in tokenizers]
    results, sizes = measure_all(rivals, languages), {rival.name: rival.size for rival in rivals}
    print(*describe(results, sizes, base), sep="\n")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "report.json", json.dumps(as_json(results, sizes, base), indent=1) + "\n")
        draw(results, out / "fertility.png")
        print(f"{out}/report.json, {out}/fertility.png")


def group_texts(group: Group) -> Iterator[str]:
    """The texts of a group's files, of each at most `max_megabytes`, as often as they count."""
    from foresail.tokenizer.training.groups import repeat

    limit = float("inf") if group.max_megabytes is None else group.max_megabytes * 1e6
    for pattern, weight in group.weighted_files:
        yield from repeat((text for file in find_all((pattern,)) for text in read_most(file, limit)), weight)


def read_most(file: Path, limit: float) -> Iterator[str]:
    """The first texts of a file, until they have `limit` bytes."""
    from foresail.data.long_context.texts import read_texts

    for text in read_texts(file):
        yield text
        limit -= len(text.encode(errors="replace"))
        if limit <= 0:
            break


def find_all(patterns: tuple[str, ...]) -> list[Path]:
    """Files of paths, folders and globs, each once, in the patterns' order, then by name."""
    import glob

    from foresail.data.corpus.documents import find_files

    files: dict[Path, None] = {}
    for pattern in patterns:
        matches = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        if not matches:
            raise FileNotFoundError(
                f"{pattern}: no such file; paths count from the folder the command runs in"
            )
        files.update(dict.fromkeys(find_files(matches)))
    return [*files]


def language_texts(paths: list[Path]) -> dict[str, list[str]]:
    """language_texts([Path("udhr")]) -> {"en": [text of en.txt], "id": …}."""
    from foresail.data.long_context.texts import read_texts

    files = find_all(tuple(map(str, paths)))
    languages: dict[str, list[str]] = {}
    for file in files:
        languages.setdefault(file.name.split(".")[0], []).extend(read_texts(file))
    return languages
