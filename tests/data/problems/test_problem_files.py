"""Problems from files: the forms users bring, and every mistake in them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard

from foresail.data.problems.problems import load_problems
from foresail.judge.programs.rows import read_task
from foresail.recipe.tables.parts import Problems
from foresail.records import Message, Problem

SHARED = Path(__file__).parents[4] / "shared" / "data" / "math"
VERL = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}],
    "ability": "math",
    "reward_model": {"style": "rule", "ground_truth": "4"},
    "extra_info": {"split": "train", "index": 0, "answer": "2+2=4\n#### 4"},
}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def load(path: Path, **settings: Any) -> list[Problem]:
    return load_problems(Problems(source=str(path), **settings))


def load_row(tmp_path: Path, row: Any, **settings: Any) -> Problem:
    return load(write(tmp_path / "one.jsonl", [row]), **settings)[0]


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    return path


def test_gsm8k_answers_are_reduced_to_numbers() -> None:
    problems = load(shared("gsm8k/test.jsonl.gz"))
    assert len(problems) == 1319
    assert problems[0].answer == "18"
    assert problems[0].id == "test:0"
    assert problems[0].prompt[0].content.startswith("Janet’s ducks lay 16 eggs")
    assert problems[0].extra["answer"].endswith("#### 18")
    assert all(float(problem.answer).is_integer() for problem in problems)


@pytest.mark.parametrize(
    ("name", "count", "first_answer"),
    [
        ("deepmath_5k/train.jsonl.gz", 4994, "1"),
        ("rllm_train/aime1983_2023.jsonl.gz", 975, "60"),
        ("math500/test.jsonl.gz", 500, r"\left( 3, \frac{\pi}{2} \right)"),
        ("minerva_math_with_answers/test.jsonl.gz", 272, "9.6"),
        ("aimo_validation_amc/test.jsonl.gz", 83, "142"),
        ("eval_qwen25math/olympiadbench.jsonl.gz", 675, "2"),
    ],
)
def test_public_sets_load_as_they_are(name: str, count: int, first_answer: str) -> None:
    problems = load(shared(name))
    assert (len(problems), problems[0].answer) == (count, first_answer)
    assert len({problem.id for problem in problems}) == count


def test_answer_found_in_a_worked_solution_is_the_stated_one() -> None:
    # MATH gives both: our reading of the solution must agree with the answer its authors cut out.
    stated = load(shared("math500/test.jsonl.gz"))
    read = load(shared("math500/test.jsonl.gz"), answer_key="solution")
    assert [problem.answer for problem in read] == [problem.answer for problem in stated]


def test_verl_rows_from_parquet(tmp_path: Path) -> None:
    rows = [VERL, {**VERL, "reward_model": {"style": "rule", "ground_truth": "5"}}]
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    first, second = load(tmp_path / "train.parquet")
    assert first.prompt == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="2+2?"),
    )
    assert (first.id, first.source, first.answer, second.answer) == ("train:0", "openai/gsm8k", "4", "5")
    assert first.extra == VERL  # the messages too, for reward functions that want them


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "def add(a, b):", "test": "def check(f):\n    assert f(1, 2) == 3", "entry_point": "add"},
        {"text": "Add two numbers.", "test_list": ["assert add(1, 2) == 3"]},
        {"problem": "Add them.", "tests": [{"input": "1 2", "output": "3"}]},
    ],
)
def test_code_problems_are_held_against_their_tests(tmp_path: Path, row: dict) -> None:
    problem = load_row(tmp_path, row)
    assert problem.answer
    assert len(read_task({"prompt": problem.prompt[0].content, **problem.extra}).tests) == 1


def test_trl_rows_keep_every_other_column(tmp_path: Path) -> None:
    problem = load_row(tmp_path, {"prompt": "2+2?", "solution": "It is $\\boxed{4}$.", "tags": ["easy"]})
    assert problem.prompt == (Message(role="user", content="2+2?"),)
    assert problem.answer == "4"
    assert problem.extra == {"solution": "It is $\\boxed{4}$.", "tags": ["easy"]}


def test_named_columns_of_slime_and_openrlhf(tmp_path: Path) -> None:
    row = {"text": "2+2?", "prompt": "not this", "meta": {"label": 4}}
    problem = load_row(tmp_path, row, prompt_key="text", answer_key="meta.label")
    assert (problem.prompt[0].content, problem.answer) == ("2+2?", "4")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.json.gz", "a.parquet"])
def test_all_formats_hold_the_same_problems(tmp_path: Path, name: str) -> None:
    rows = [{"question": f"{i}+1?", "answer": str(i + 1)} for i in range(5)]
    text = json.dumps(rows, indent=1) if ".json" in name.replace(".jsonl", "") else None
    text = text or "".join(json.dumps(row) + "\n\n" for row in rows)
    path = tmp_path / name
    if name.endswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    problems = load(path)
    assert [problem.answer for problem in problems] == ["1", "2", "3", "4", "5"]
    assert [problem.id for problem in problems] == [f"a:{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (4, "4"),
        (4.0, "4"),
        (0.5, "0.5"),
        (0, "0"),
        (" x ", "x"),
        (["1", "2"], "1, 2"),
        ({"in": "1"}, '{"in": "1"}'),
        ("so\n#### -1,234,567", "-1234567"),
        ("#### (1,2)", "(1,2)"),
    ],
)
def test_answers_become_text(tmp_path: Path, value: Any, answer: str) -> None:
    assert load_row(tmp_path, {"prompt": "?", "answer": value}).answer == answer


def test_ids_come_from_a_column_only_if_it_tells_rows_apart(tmp_path: Path) -> None:
    row = {"prompt": "?", "answer": 1}
    distinct = write(tmp_path / "a.jsonl", [{**row, "id": 7}, {**row, "id": "x"}])
    repeated = write(tmp_path / "b.jsonl", [{**row, "id": 7}, {**row, "id": 7}])
    partial = write(tmp_path / "c.jsonl", [{**row, "id": 7}, row])
    assert [problem.id for problem in load(distinct)] == ["7", "x"]
    assert [problem.id for problem in load(repeated)] == ["b:0", "b:1"]
    assert [problem.id for problem in load(partial)] == ["c:0", "c:1"]


def test_system_suffix_and_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"prompt": f"{i}?", "answer": i} for i in range(3)])
    problems = load(path, system="Think.", suffix=" Box it.", limit=2)
    assert [problem.prompt for problem in problems] == [
        (Message(role="system", content="Think."), Message(role="user", content=f"{i}? Box it."))
        for i in (0, 1)
    ]


def test_limit_stops_reading_before_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "?", "answer": 1}\n{broken\n')
    assert len(load(path, limit=1)) == 1


def test_content_in_parts_is_joined(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "2+"}, {"type": "text", "text": "2?"}]
    problem = load_row(tmp_path, {"prompt": [{"role": "user", "content": parts}], "answer": 4})
    assert problem.prompt[0].content == "2+2?"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"promt": "?", "answer": 1}, r"one\.jsonl:1: no prompt column; found columns promt, answer"),
        ({"promt": "?", "answer": 1}, r"\(did you mean promt\?\); set prompt_key to the right one"),
        ({"prompt": "?", "anwser": 1}, r"one\.jsonl:1: no answer column; found columns prompt, anwser"),
        ({"prompt": "?", "anwser": 1}, r"\(did you mean anwser\?\); set answer_key to the right one"),
        ({}, r"found columns \(none\)"),
        ({"prompt": " ", "answer": 1}, "the prompt is empty"),
        ({"prompt": 3, "answer": 1}, "expected a list of messages with role and content, found 3"),
        ({"prompt": [], "answer": 1}, "expected a list of messages"),
        ({"prompt": ["?"], "answer": 1}, "a message needs role and content"),
        ({"prompt": [{"role": "human", "content": "?"}], "answer": 1}, "unknown role 'human'; use one of"),
        ({"prompt": [{"role": "user", "content": [{}]}], "answer": 1}, "message content must be text"),
        (
            {"prompt": [{"role": "assistant", "content": "!"}], "answer": 1},
            "a message of the assistant; it must",
        ),
        ([1, 2], r"one\.jsonl, item 1: expected an object"),
        ("text", r"one\.jsonl:1: expected an object with named columns, found text"),
    ],
)
def test_bad_rows_say_where_and_what(tmp_path: Path, row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_row(tmp_path, row)


@pytest.mark.parametrize("answer", [None, "  ", [], {}, "so\n#### ", r"none, so $\boxed{}$"])
def test_problem_without_an_answer_is_refused(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(
        ValueError, match=r"1 of 1 problems have no answer: .*one\.jsonl:1; fill them in or delete"
    ):
        load_row(tmp_path, {"prompt": "?", "answer": answer})
    with pytest.raises(ValueError, match="1 of 1 problems have no answer"):
        load_row(tmp_path, {"prompt": "?", "reward_model": {"ground_truth": answer}, "solution": "4"})


def test_all_problems_without_an_answer_are_named_at_once(tmp_path: Path) -> None:
    rows = [{"prompt": "?", "answer": "" if i % 2 else "1"} for i in range(14)]
    with pytest.raises(ValueError, match=r"7 of 14 .*jsonl:2; .*jsonl:10 and 2 more; fill"):
        load(write(tmp_path / "a.jsonl", rows))


def test_math_s_own_gaps_are_found() -> None:
    # Two of its solutions end in an empty box, and two answers were lost by those who cut them out.
    with pytest.raises(ValueError, match=r"4 of 7500 problems .*:5342; .*:5344; .*:6628; .*:7302; fill"):
        load(shared("MATH/train7500.jsonl.gz"))
    with pytest.raises(ValueError, match=r"2 of 7500 problems .*:5342; .*:5344; fill"):
        load(shared("MATH/train7500.jsonl.gz"), answer_key="solution")
    assert len(load(shared("MATH/train7500.jsonl.gz"), limit=5341)) == 5341


def test_named_column_that_is_absent_shows_the_nearest(tmp_path: Path) -> None:
    row = {"question": "?", "answer": 1, "meta": {"label": 2}}
    with pytest.raises(ValueError, match=r"prompt_key 'questoin' is not there.*did you mean question\?"):
        load_row(tmp_path, row, prompt_key="questoin")
    with pytest.raises(ValueError, match=r"answer_key 'meta\.lable' is not there.*did you mean meta\?"):
        load_row(tmp_path, row, answer_key="meta.lable")


def test_second_system_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="problem one:0 brings its own system message; unset system"):
        load_row(tmp_path, VERL, system="Think.")


def test_suffix_needs_a_user_message(tmp_path: Path) -> None:
    row = {"prompt": [{"role": "tool", "content": "?"}], "answer": 1}
    with pytest.raises(ValueError, match="no user message to put the suffix after"):
        load_row(tmp_path, row, suffix="!")


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", [VERL])
    with pytest.raises(FileNotFoundError, match=r"trian\.jsonl does not exist; near it: train\.jsonl"):
        load(tmp_path / "trian.jsonl")
    with pytest.raises(FileNotFoundError, match=r"a\.jsonl does not exist \(looked from "):
        load(tmp_path / "none" / "a.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"is a folder without data files \(\.jsonl, .*; name a file or"
    ):
        load(tmp_path / "empty")


def test_a_folder_is_its_files_by_name(tmp_path: Path) -> None:
    """Such as the output of a curation; what lies beside them, and in folders, is not read."""
    for name in ("shard-1.jsonl", "shard-0.jsonl.gz", "config.json", ".tmp-shard-2.jsonl", "below/a.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        row = json.dumps({"prompt": name, "answer": "1"}).encode()
        (tmp_path / name).write_bytes(gzip.compress(row, mtime=0) if name.endswith(".gz") else row)
    (tmp_path / "shard-2.jsonl.zst").write_bytes(zstandard.compress(b'{"prompt": "last", "answer": "1"}\n'))
    prompts = [problem.prompt[0].content for problem in load(tmp_path)]
    assert prompts == ["shard-0.jsonl.gz", "shard-1.jsonl", "last"]


@pytest.mark.parametrize("content", ["", "\n\n", "[]"])
def test_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"a\.jsonl is empty; it needs at least one row"):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            b'{"prompt": "?"}\n\n{"prompt": \n',
            r"a\.jsonl:3: not JSON .*correct or delete this line",
        ),
        ("a.json", b'[{"prompt": "?"},\n{"prompt" 3}]', r"a\.json:2: not JSON"),
        ("a.jsonl", b'{"prompt": "\xff"}', "is not UTF-8 text"),
        ("a.jsonl.gz", b"plain text", "is damaged or cut short"),
        ("a.jsonl.gz", gzip.compress(b'{"prompt": "?"}' * 99, mtime=0)[:-12], "is damaged or cut short"),
        ("a.parquet", b"PAR1 not at all", "not a readable parquet file"),
        ("a.csv", b"prompt,answer", r"is none of \.jsonl, .*convert it"),
    ],
)
def test_corrupt_files_say_where(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / name)


def test_missing_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").touch()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'foresail\[parquet\]'"):
        load(tmp_path / "a.parquet")
