"""The pool alone: what is finished is never made again, whatever is killed, and an error names its piece."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from foresail.data.jobs.plan import changed_source, write_plan
from foresail.data.jobs.pool import receipt_file, run_pieces


def open_counter(made: Path, bad: str = "", wait: float = 0.0) -> Callable[[str, Path], dict[str, int]]:
    """Counts words, and notes in the folder `made` which piece it was asked for and how often."""

    def count(name: str, file: Path) -> dict[str, int]:
        (made / f"{name}-{time.monotonic_ns()}").touch()
        text = file.read_text()
        time.sleep(wait)
        if name == bad and "die" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "no number" in text:
            raise ValueError(f"{file}: no number in it; mend it")
        return {"words": len(text.split())}

    return count


def write_files(folder: Path, count: int) -> dict[str, Path]:
    pieces = {}
    for number in range(count):
        pieces[f"part-{number}"] = file = folder / f"{number}.txt"
        file.write_text("word " * number)
    for name in ("out", "made"):
        (folder / name).mkdir()
    return pieces


def times_made(folder: Path) -> dict[str, int]:
    names = [path.name.rpartition("-")[0] for path in (folder / "made").iterdir()]
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize("workers", [1, 2])
def test_receipts_come_in_the_order_of_the_pieces_and_are_never_made_again(
    tmp_path: Path, workers: int
) -> None:
    pieces = write_files(tmp_path, 5)
    opened = partial(open_counter, tmp_path / "made")
    progress: list[tuple[int, int]] = []
    for _ in range(2):
        receipts = run_pieces(
            pieces,
            opened,
            folder=tmp_path / "out",
            workers=workers,
            note=lambda done, total: progress.append((done, total)),
        )
        assert receipts == {f"part-{number}": {"words": number} for number in range(5)}
        assert [*receipts] == [*pieces]
    assert times_made(tmp_path) == dict.fromkeys(pieces, 1)
    assert progress[0] == (0, 5) and progress[-1] == (5, 5) and progress == sorted(progress)


def run_in_group(pieces: dict[str, Path], opened: Callable[[], object], folder: Path) -> None:
    os.setsid()
    run_pieces(pieces, opened, folder=folder, workers=2)  # type: ignore[arg-type]


def test_killed_in_the_middle_it_goes_on_with_what_is_left(tmp_path: Path) -> None:
    """All processes at once, as when a machine goes down."""
    pieces = write_files(tmp_path, 8)
    out = tmp_path / "out"
    slow = partial(open_counter, tmp_path / "made", wait=0.2)
    process = multiprocessing.get_context("spawn").Process(target=run_in_group, args=(pieces, slow, out))
    process.start()
    deadline = time.monotonic() + 60
    while not [*out.glob("part-*")] and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    finished = {name for name in pieces if receipt_file(out, name).exists()}
    assert 0 < len(finished) < len(pieces)
    receipts = run_pieces(pieces, partial(open_counter, tmp_path / "made"), folder=out, workers=2)
    assert [receipt["words"] for receipt in receipts.values()] == [*range(8)]
    assert all(times_made(tmp_path)[name] == 1 for name in finished)


def test_a_worker_that_dies_is_told_with_its_piece_and_the_others_finish(tmp_path: Path) -> None:
    pieces = write_files(tmp_path, 6)
    pieces["part-2"].write_text("die here")
    opened = partial(open_counter, tmp_path / "made", "part-2")
    told = r"died at part-2 \(.*2\.txt\) \(exit codes \[-9\]\), and 1 of 6 pieces"
    with pytest.raises(ValueError, match=told):
        run_pieces(pieces, opened, folder=tmp_path / "out", workers=2)
    pieces["part-2"].write_text("mended now")
    receipts = run_pieces(pieces, opened, folder=tmp_path / "out", workers=2)
    assert receipts["part-2"] == {"words": 2}
    assert times_made(tmp_path) == {**dict.fromkeys(pieces, 1), "part-2": 2}


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_keeps_its_words_and_what_was_finished_before(tmp_path: Path, workers: int) -> None:
    pieces = write_files(tmp_path, 4)
    pieces["part-3"].write_text("no number")
    with pytest.raises(ValueError, match=r"3\.txt: no number in it; mend it"):
        run_pieces(pieces, partial(open_counter, tmp_path / "made"), folder=tmp_path / "out", workers=workers)
    assert not receipt_file(tmp_path / "out", "part-3").exists()
    assert workers > 1 or all(
        receipt_file(tmp_path / "out", f"part-{number}").exists() for number in range(3)
    )


def test_a_plan_names_the_first_source_that_changed_and_refuses_other_requests(tmp_path: Path) -> None:
    request = {"sources": [{"path": "a", "bytes": 1}, {"path": "b", "bytes": 2}], "text_key": None}
    assert changed_source(tmp_path, request) is None
    write_plan(tmp_path, request)
    assert changed_source(tmp_path, request) is None
    mended = {**request, "sources": [{"path": "a", "bytes": 1}, {"path": "b", "bytes": 3}]}
    assert changed_source(tmp_path, mended) == 1
    for other, words in (
        ({**request, "text_key": "body"}, "another text key"),
        ({**request, "sources": request["sources"][:1]}, "other sources"),  # type: ignore[index]
    ):
        with pytest.raises(ValueError, match=f"was begun with {words}; give the same sources"):
            changed_source(tmp_path, other)
