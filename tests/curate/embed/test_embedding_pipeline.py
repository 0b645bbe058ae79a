"""Steps by embeddings in a curation: any number of processes and kill -9 give the same bytes; parts of rows."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_checkpoint import write_checkpoint
from small_recipe import output_files

from foresail.curate.curation import curate
from foresail.curate.document import Document
from foresail.curate.embed.texts import part_of
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.rows.row import read_row
from foresail.data.rows import read_rows
from foresail.runlog.lock import FolderInUse

ROWS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations of which some repeat themselves, and a tiny checkpoint."""
    folder = tmp_path_factory.mktemp("embedded")
    write_checkpoint(folder / "model")
    (folder / "in").mkdir()
    for name in ("a", "b"):
        rows = [
            {"id": f"{name}{n}", "prompt": f"{n % 13} + {n % 3} = {'?' * (n % 5)}", "completion": f"{n * 7}"}
            for n in range(ROWS)
        ]
        (folder / "in" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def recipe_in(folder: Path, out: Path, workers: int) -> CurationRecipe:
    by_model = {"model": str(folder / "model"), "device": "cpu"}
    return build_curation(
        {
            "out": str(out),
            "source": [{"path": str(folder / "in"), "holds": "conversations"}],
            "step": [
                {"name": "semantic_duplicates", "threshold": 0.9999, **by_model},
                {"name": "select_diverse", "share": 0.5, "neighbours": 3, **by_model},
            ],
            "cluster": {"workers": workers},
        }
    )


def run_as_group(folder: Path, out: Path) -> None:
    os.setsid()
    curate(recipe_in(folder, out, workers=2))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """A fork cannot use the threads of OpenMP that its parent has started."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers_of_pieces", "one_thread")
def test_processes_and_kills_change_no_byte(folder: Path, tmp_path: Path) -> None:
    curate(recipe_in(folder, tmp_path / "whole", workers=1))
    expected = output_files(tmp_path / "whole")
    written_rows = [row.columns for row in read_rows(tmp_path / "whole/documents")]
    assert 0 < len(written_rows) < ROWS and all("cluster" in row["metadata"] for row in written_rows)
    out = tmp_path / "killed"
    for pattern in ("2-*/*.features",):
        process = multiprocessing.get_context("fork").Process(target=run_as_group, args=(folder, out))
        process.start()
        assert process.pid is not None
        deadline = time.monotonic() + 300
        while process.is_alive() and not [*out.glob(f"work/{pattern}")]:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    curate_when_free(recipe_in(folder, out, workers=2))
    assert output_files(out) == expected


def curate_when_free(recipe: CurationRecipe) -> None:
    """Forks share their parent's lock: it is free when the last of those killed is gone."""
    deadline = time.monotonic() + 60
    while True:
        try:
            curate(recipe)
            return
        except FolderInUse:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_parts_of_conversations_problems_and_documents() -> None:
    turns = [
        ("system", "Be kind."),
        ("user", "One?"),
        ("assistant", "1"),
        ("user", "Two?"),
        ("assistant", "2"),
    ]
    messages = [{"role": role, "content": content} for role, content in turns]
    chat = read_row({"messages": messages}, "c", "made", "conversations")
    problem = read_row({"prompt": "1+1?", "answer": 2}, "p", "made", "problems")
    assert isinstance(chat, Document) and isinstance(problem, Document)
    plain = Document(id="d", text="words")
    assert [part_of(chat, part) for part in ("prompt", "answer")] == ["One?\n\nTwo?", "1\n\n2"]  # type: ignore[arg-type]
    assert part_of(chat, "all") == chat.text
    assert [part_of(problem, part) for part in ("prompt", "answer", "all")] == ["1+1?", "2", "1+1?\n\n2"]  # type: ignore[arg-type]
    assert [part_of(plain, part) for part in ("prompt", "answer", "all")] == ["words", "", "words"]  # type: ignore[arg-type]
