"""What is looked for of a benchmark's rows: columns of many names, choices in any template, files of many forms."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="the extra curate is not installed")

from foresail.curate.decontaminate import gram_kernel, hashing, token_kernel
from foresail.curate.decontaminate.benchmark import Benchmark, read_benchmark
from foresail.curate.decontaminate.build import RowTexts, build_index
from foresail.curate.decontaminate.escapes import unescaped
from foresail.curate.decontaminate.grams import Grams
from foresail.curate.decontaminate.index import Index
from foresail.curate.decontaminate.questions import Question, questions
from foresail.curate.decontaminate.step import Decontaminate
from foresail.curate.decontaminate.tokens import Masks
from foresail.curate.document import Document

ASKED = "Which animal gives milk?"
CHOICES = ("a striped shark of the deep sea", "some old grey bat", "the ostrich", "42")
THAI = ("ผู้ชายเปิดก๊อกน้ำ", "โถส้วมเต็มไปด้วยน้ำ", "น้ำไหลออกมาจากก๊อก")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"question": ASKED, "choices": {"text": ["a", "b c"], "label": ["A", "B"]}}, (ASKED, ("a", "b c"))),
        ({"Question": ASKED, "A": "x", "B": "y", "Answer": "A"}, (ASKED, ("x", "y"))),
        ({"premise": "It rained.", "choice1": "x", "choice2": "y", "question": "effect", "label": 0},
         ("It rained.", ("x", "y"))),
        ({"prompts": [{"question": ASKED, "option_a": "x", "option_b": "y", "subject": "s"}], "id": 1},
         (ASKED, ("x", "y"))),
        ({"goal": "Boil an egg", "sol1": "x", "sol2": "y", "label": 1}, ("Boil an egg", ("x", "y"))),
        ({"ctx": "She takes the ball and", "endings": ["x", "y"]}, ("She takes the ball and", ("x", "y"))),
        ({"prompt": [{"role": "user", "content": ASKED}], "reward_model": {"style": "rule"}}, (ASKED, ())),
        ({"turns": ["Write a poem.", "Now in prose."]}, ("Write a poem.\nNow in prose.", ())),
        ({"1": ASKED, "2": "18"}, (ASKED, ())),
    ],
)  # fmt: skip
def test_the_question_of_a_row(row, expected):
    assert questions(row) == [Question(*expected)]


def index_of_parts(*parts: str, n: int = 13) -> Index:
    return build_index([RowTexts(0, (parts[0],), parts)], Grams(n, n * 3 // 2), Masks())


@given(st.permutations([0, 1, 2, 3]), st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_a_question_with_choices_is_found_in_any_template(order, seed):
    dice, index = random.Random(seed), index_of_parts(ASKED, *CHOICES)
    label = dice.choice(["({})", "{}.", "{}:", "- {} ", "choice{}=", '", "option_{}": "'])
    between = dice.choice(["\n", " ", " ||| ", "\nAnother choice is\n"])
    listed = between.join(f"{label.format('ABCD'[place])} {CHOICES[one]}" for place, one in enumerate(order))
    head, tail = ["Once upon a time. " * dice.randrange(9) for _ in range(2)]
    text = f"{head}Q: {ASKED.upper()}{dice.choice(['', ' Options:', ' Choose one.'])}\n{listed}\n{tail}"
    assert [match.row for match in index.find(text)] == [0]
    missing = dice.randrange(3)
    assert index.find(text.replace(CHOICES[missing], "another thing")) == []


def test_parts_are_near_each_other():
    index = index_of_parts(*THAI)
    assert [match.share for match in index.find(f"{THAI[2]} เพราะ {THAI[0]} หรือ {THAI[1]}")] == [1.0]
    assert index.find(f"{THAI[0]} {THAI[1]}" + " so it is" * 100 + THAI[2]) == []


def search(path: Path, **keys: Any) -> Any:
    return Decontaminate.model_validate({"against": {"path": str(path), **keys}, "n": 13}).open_search()


def test_named_columns_are_looked_for_together(tmp_path):
    file = tmp_path / "bench.jsonl"
    file.write_text(
        json.dumps(
            {"setting": "The man opened the tap", "a": "water came out", "b": "the lamp went out again"}
        )
    )
    step = search(file, columns=["setting", "a", "b"])
    both = "The man opened the tap. Why? Either water came out, or the lamp went out again."
    assert step(Document(id="a", text=both)) and not step(
        Document(id="b", text=both.replace("water", "smoke"))
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.csv", "id,Frage\nq1,Was ist das?\n", "no row has two words in .*its columns are 1, 2; write columns"),
        ("b.jsonl", '{"question": "effect", "cause": "It rained all day"}\n', "no row has two words"),
        ("b.json", '{"a": {"text": "ok"}, "b": {"text": "no"}}', "no row has two words"),
    ],
)  # fmt: skip
def test_a_file_of_which_nothing_would_be_looked_for_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_benchmark(Benchmark(path=str(tmp_path / name)))


def test_names_of_columns_have_any_case(tmp_path):
    (tmp_path / "b.csv").write_text(f"Id,Question,A,B\nq1,{ASKED},cow,bat\n")
    (row,) = read_benchmark(Benchmark(path=str(tmp_path / "b.csv")))
    assert row.texts[0] == ASKED and row.parts == (ASKED, "cow", "bat")


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_escapes_are_read_back(text):
    plain = text.replace("\\", "").replace("&", "").replace("\n", " ").replace("\r", " ").replace("\t", " ")
    plain = "".join(one for one in plain if one >= " ")
    escaped = json.dumps(plain)[1:-1]
    assert unescaped(escaped).replace('\\"', '"') == plain
    assert unescaped(json.dumps(escaped)[1:-1]).replace("\\", "") == plain
    assert (
        unescaped("".join(f"&#{ord(one)};" if one > "~" and ord(one) > 0x9F else one for one in plain))
        == plain
    )


def test_commands_of_latex_are_no_line_breaks():
    written = r"\nu \neq \times x\nthen \right) \theta \text{a} \rho \not \tbody"
    assert unescaped(written) == r"\nu \neq \times x then \right) \theta \text{a} \rho \not  body"


@pytest.mark.parametrize("kernel", [token_kernel, gram_kernel])
def test_compiled_loops_notice_other_hashing(kernel):
    """numba compiles again when a kernel's own file changes, not when hashing.py does."""
    source = Path(hashing.__file__).read_bytes()
    assert hashlib.sha256(source).hexdigest()[:8] == kernel.HASHING_FILE, (
        "write this checksum into the kernels"
    )
