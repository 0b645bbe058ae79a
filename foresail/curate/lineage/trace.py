"""Traces a row back: from a rollout to its problem, to the steps it passed and the raw row it was read from.

    trace(Path("runs/rl"), "maths:17.3") -> [Section(title="runs/rl, step 12", …), Section(title="data/…:18", …), …]

The target is a run, a recipe, a curation's folder or a data file. A file that a curation has written is traced
through it, and one that names the rows it was made of through those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foresail.curate.document import Document
from foresail.curate.lineage.section import FROM, Section, made_lines, made_of
from foresail.curate.read.piece import ReadPiece
from foresail.curate.read.source import read_documents
from foresail.curate.recipe import CurationRecipe, load_curation
from foresail.curate.run.plan import pieces_of
from foresail.curate.run.saved_recipe import is_curation, open_curation
from foresail.curate.run.why import explain, locate
from foresail.data.made.generators import generate, names_generator
from foresail.data.rows import ID_KEYS, Row, read_rows
from foresail.recipe.reading.load import load_recipe, read_toml
from foresail.recipe.stages.sft import Sft
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.inputs import default_name
from foresail.runlog.directory import RunDirectory
from foresail.runlog.episode import find_episode

MOST_ORIGINS = 5  # rows that one was made of


def trace(
    target: Path,
    name: str,
    *,
    step: int | None = None,
    overrides: Sequence[str] = (),
    limit: int | None = None,
) -> list[Section]:
    """`name` is an id, an address, a place (FILE:LINE), or PROBLEM.SAMPLE of a run."""
    tracer = Tracer()
    if target.suffix == ".toml" and "stage" not in read_toml(target):
        return [*tracer.curation(load_curation(target, overrides).limited(limit), name)]
    if overrides or limit is not None:
        raise ValueError("overrides and --limit go with a curation's recipe; leave them out")
    if target.suffix == ".toml":
        return [*tracer.data(load_recipe(target), name)]
    if is_curation(target):
        with open_curation(target) as recipe:
            return [*tracer.curation(recipe, name)]
    if (run := RunDirectory(target)).recipe_path.is_file():
        return [*tracer.run(run, name, step)]
    return [*tracer.file(str(target), name)]


class Tracer:
    """No row is traced twice: files may name each other, and copies of a row what it was made of."""

    def __init__(self) -> None:
        self.traced: set[tuple[str, str]] = set()

    def run(self, run: RunDirectory, name: str, step: int | None) -> Iterator[Section]:
        problem = name
        if run.rollout_steps():
            number, row = find_episode(run, name, step)
            problem = row["problem"]
            reward = "none" if row["reward"] is None else f"{row['reward']:.3g}"
            line = (f"{problem}.{row['sample']}", f"{row['status']}, reward {reward}")
            yield Section(title=f"{run.path}, step {number}", lines=(line,))
            yield from told(f"problem {problem}", self.data(load_recipe(run.recipe_path), problem))
        else:
            yield from self.data(load_recipe(run.recipe_path), problem)

    def data(self, recipe: Stage, name: str) -> Iterator[Section]:
        """Of the recipe's sources the first that has the row."""
        sources = sources_of(recipe)
        for source, label in sources:
            # where two sources have one id, a run puts the source's name before it
            for id in (name, name.removeprefix(f"{label}:")):
                if has_row(source, id, label):
                    yield from self.file(source, id, label)
                    return
        places = ", ".join(source for source, _ in sources) or "no source"
        raise ValueError(
            f"no row {name!r} is in the recipe's data ({places}); ids stand in its rollouts and files"
        )

    def file(self, source: str, name: str, label: str | None = None) -> Iterator[Section]:
        if (source, name) in self.traced:
            return
        self.traced.add((source, name))
        if names_generator(source):
            yield generator_section(source, name)
            return
        row = find_row(source, name, label or default_name(source))
        if row is None:
            raise ValueError(f"{source} has no row {name!r}; name one by its id or its place, FILE:LINE")
        made = made_of(row.columns)
        yield Section(title=row.place, lines=tuple(made_lines(made)))
        yield from self.enclosing(Path(source), str(row.columns.get("id", name)))
        yield from self.origins(made)

    def curation(self, recipe: CurationRecipe, name: str) -> Iterator[Section]:
        lines = map(split_verdict, explain(recipe, name))
        yield Section(title=f"curation {recipe.out}", lines=tuple(lines))
        piece, number = locate(recipe, name)
        read_from = pieces_of(recipe)[int(piece)]
        id, read = next(iter(read_documents(read_from, number)))
        if read_from.kind == "made":
            yield generator_section(read_from.files[0], id)
            return
        file = raw_file(read_from, id)
        made = made_of({**(read.row or {}), "metadata": read.metadata}) if isinstance(read, Document) else {}
        yield Section(title=str(file), lines=(("row", id), *made_lines(made)))
        yield from self.enclosing(file, id)
        yield from self.origins(made)

    def enclosing(self, file: Path, id: str) -> Iterator[Section]:
        """The curation that has written the file."""
        folders = (folder for folder in (file, *file.absolute().parents) if is_curation(folder))
        if (folder := next(folders, None)) is not None and (str(folder), id) not in self.traced:
            self.traced.add((str(folder), id))
            with open_curation(folder) as recipe:
                yield from told(f"curation {folder}", self.curation(recipe, id))

    def origins(self, made: dict[str, Any]) -> Iterator[Section]:
        """The rows that a row says it was made of, as far as they are still there."""
        for origin in made.get(FROM, ())[:MOST_ORIGINS]:
            if "source" not in origin:  # of the same curation, which is traced anyway
                continue
            source, id = str(origin["source"]), str(origin.get("id"))
            if names_generator(source) or Path(source).exists():
                yield from self.origin(source, id)
            elif (source, id) not in self.traced:
                self.traced.add((source, id))
                yield Section(title=f"{source}, row {id}", lines=(("file", "not there any more"),))

    def origin(self, source: str, id: str) -> Iterator[Section]:
        """A row of a file; of a file without rows, such as a product table, the name alone."""
        yield from told(f"{source}, row {id}", self.file(source, id))


def told(title: str, sections: Iterator[Section]) -> Iterator[Section]:
    """What is not there any more, or cannot be read, is said; what came before it is shown."""
    try:
        yield from sections
    except (ValueError, OSError) as error:
        yield Section(title=title, lines=(("not shown", str(error)),))


def sources_of(recipe: Stage) -> list[tuple[str, str]]:
    """Paths and labels."""
    tables: list[Any] = (
        [table for _, table in recipe.logs()]
        if isinstance(recipe, Sft)
        else [*getattr(recipe, "data", ()), *getattr(recipe, "eval", ())]
    )
    return [*dict.fromkeys((table.source, table.label) for table in tables if hasattr(table, "source"))]


def has_row(source: str, name: str, label: str) -> bool:
    if names_generator(source):
        return any(problem.id == name for problem in generate(source))
    return find_row(source, name, label) is not None


def generator_section(source: str, name: str) -> Section:
    made = next((made_of(problem.extra) for problem in generate(source) if problem.id == name), {})
    return Section(title=f"made by {source}", lines=(("problem", name), *made_lines(made)))


def find_row(source: str, name: str, label: str) -> Row | None:
    """By an id column, by its place, or by LABEL:NUMBER, as rows without an id are named."""
    for number, row in enumerate(read_rows(Path(source))):
        ids = (str(row.columns[key]) for key in ID_KEYS if row.columns.get(key) is not None)
        if name in (row.place, f"{label}:{number}", *ids):
            return row
    return None


def raw_file(piece: ReadPiece, id: str) -> Path:
    """Of a run of small files, the one that the id names."""
    names = zip(piece.names, piece.files, strict=True)
    return Path(piece.folder, next((file for name, file in names if id.startswith(name)), piece.files[0]))


def split_verdict(verdict: str) -> tuple[str, str]:
    label, _, said = verdict.partition(": ")
    return label, said
