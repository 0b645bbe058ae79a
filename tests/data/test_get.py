"""Well-known data sets as files: through `datasets`, or from a folder; and what is said where neither is there."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_line import CommandLine
from tiny_world import write_lines

from foresail.data.chats.conversations import load_conversations
from foresail.data.get import KNOWN, get
from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems

ROWS = [{"question": f"{n} eggs and one more?", "answer": f"So.\n#### {n + 1}"} for n in range(4)]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Stands for the library `datasets`: keeps what it was asked for, and gives rows of GSM8K."""
    asked: list[tuple[Any, ...]] = []

    def load_dataset(path: str, name: str | None, *, split: str) -> list[dict[str, Any]]:
        asked.append((path, name, split))
        if path == "tatsu-lab/alpaca":
            return [
                {"instruction": "Add.", "input": "2 2", "output": "4", "text": "…"},
                {"instruction": "Add."},
            ]
        if path == "HuggingFaceH4/MATH-500":
            raise ConnectionError("Couldn't reach the Hub\nmore lines")
        return [*ROWS, {"question": "?", "answer": ""}]

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


def test_splits_are_fetched_once_without_rows_that_have_no_answer(
    tmp_path: Path, hub: list[tuple[Any, ...]]
) -> None:
    found = [str(fetched) for fetched in get("gsm8k", tmp_path)]
    assert found == [
        f"{tmp_path}/gsm8k/{split}.jsonl: 4 rows, 1 without an answer left out" for split in ("train", "test")
    ]
    assert hub == [("openai/gsm8k", "main", "train"), ("openai/gsm8k", "main", "test")]
    problems = load_problems(Problems(source=str(tmp_path / "gsm8k/train.jsonl")))
    assert [problem.answer for problem in problems] == ["1", "2", "3", "4"]
    assert [str(fetched).partition(": ")[2] for fetched in get("gsm8k", tmp_path)] == [
        "already there; remove it to fetch it anew"
    ] * 2
    assert len(hub) == 2


def test_instructions_are_conversations(tmp_path: Path, hub: list[tuple[Any, ...]]) -> None:
    (fetched,) = get("alpaca", tmp_path)
    assert (fetched.rows, fetched.left_out) == (1, 1)
    ((asked, answered),) = load_conversations(fetched.path)
    assert (asked.content, answered.content) == ("Add.\n\n2 2", "4")


def test_no_network_and_no_library_say_what_to_do(
    tmp_path: Path, hub: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        OSError, match=r"MATH-500 could not be fetched \(Couldn't reach the Hub\); is there a netw"
    ):
        get("math500", tmp_path)
    monkeypatch.setitem(sys.modules, "datasets", None)  # what is not installed raises ImportError
    with pytest.raises(
        ImportError, match=r"pip install 'foresail\[data\]'; or bring its files yourself: fores"
    ):
        get("gsm8k", tmp_path)


def test_files_of_a_folder_will_do(tmp_path: Path) -> None:
    """Split by name, in the Hub's layout too; or, of MBPP's one file, by its authors' numbers."""
    folder = tmp_path / "mine"
    (folder / "main").mkdir(parents=True)
    (folder / "socratic").mkdir()
    write_lines(folder / "main" / "train-00000-of-00001.jsonl", ROWS)
    write_lines(folder / "socratic" / "train-00000-of-00001.jsonl", ROWS)
    train, test = get("gsm8k", tmp_path / "data", folder)
    assert train.rows == 4 and "has no file of the split test" in str(test)
    tasks = [
        {"task_id": n, "text": "Add.", "test_list": ["assert f() == 1"]} for n in (2, 11, 510, 600, 601, 974)
    ]
    (tmp_path / "mbpp").mkdir()
    with gzip.open(tmp_path / "mbpp" / "mbpp.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in tasks))
    assert [fetched.rows for fetched in get("mbpp", tmp_path / "data", tmp_path / "mbpp")] == [2, 2]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no file of the split train .* it has no data files"):
        get("math", tmp_path / "data", tmp_path / "empty")
    with pytest.raises(ValueError, match="is no folder"):
        get("math", tmp_path / "data", tmp_path / "nowhere")


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "train.jsonl", [{"question": "?", "answer": None}])
    with pytest.raises(ValueError, match="no row of train has an answer, 1 have none"):
        get("gsm8k", tmp_path / "data", tmp_path)
    assert not (tmp_path / "data").exists()


def test_the_command(foresail: CommandLine, tmp_path: Path) -> None:
    listed = foresail.run("data", "get")
    assert listed.code == 0 and [line.split()[0] for line in listed.out.splitlines()] == list(KNOWN)
    wrong = foresail.run("data", "get", "gsm")
    assert wrong.code == 1 and wrong.err.startswith("error: unknown data set 'gsm'; did you mean gsm8k?")
    (tmp_path / "here").mkdir()
    for split in ("train", "test"):
        write_lines(tmp_path / "here" / f"{split}.jsonl", ROWS)
    done = foresail.run("data", "get", "gsm8k", "--from", "here")
    assert done.out == "data/gsm8k/train.jsonl: 4 rows\ndata/gsm8k/test.jsonl: 4 rows\n"
