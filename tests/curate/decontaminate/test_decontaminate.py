"""Rows of benchmarks in training data: they leak however they are written; what only sounds alike does not."""

from __future__ import annotations

import json
import lzma
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from decontaminate.leak_changes import CHANGES
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="the extra curate is not installed")

from foresail.curate.curation import curate
from foresail.curate.decontaminate.build import RowTexts, build_index
from foresail.curate.decontaminate.grams import Grams
from foresail.curate.decontaminate.index import Index
from foresail.curate.decontaminate.step import Decontaminate
from foresail.curate.decontaminate.tokens import Masks
from foresail.curate.document import Document
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.rows.row import with_row
from foresail.curate.run.why import explain, layout
from foresail.recipe.reading.load import RecipeError

ROWS = [
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips "
    "did Natalia's shop sell altogether in April and May?",
    "A café in Zürich served 1,250 cups of coffee on Monday and twice as many on Tuesday, but the owner's machine "
    "broke on Wednesday. How many cups did it serve over the first two days?",
    "Đội bóng của trường thắng 12 trận, hòa 5 trận và thua 3 trận trong mùa giải năm nay; hỏi đội đó đã chơi "
    "tất cả bao nhiêu trận đấu?",
    "เป็ดของเจเน็ตวางไข่วันละ 16 ฟอง เธอกินไข่สามฟองเป็นมื้อเช้าทุกวัน และใช้ไข่สี่ฟองอบมัฟฟินให้เพื่อนทุกวัน",
    "珍妮特的鸭子每天下 16 颗蛋。她每天早上早餐时吃 3 颗，每天用 4 颗为朋友做松饼。剩下的鸭蛋她拿去农贸市场卖。",
    "Find the number of positive integers n for which n^2 + 3n + 7 divides n^3 + 5 and n is below a thousand.",
]
SHORT = ["The man turned on the faucet and water came", "Compute sin 60 degrees"]


def index_of(*texts: str, n: int = 13, masks: Masks | None = None) -> Index:
    return build_index([RowTexts(0, (text,)) for text in texts], Grams(n, n * 3 // 2), masks or Masks())


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*ROWS, *SHORT)


def rows_in(index: Index, text: str) -> set[int]:
    return {match.row for match in (*index.find(text), *index.find_alone(text))}


# What leaks.


@given(
    st.sampled_from(range(len(ROWS))), st.lists(st.sampled_from(CHANGES), max_size=4), st.integers(0, 10**6)
)
@settings(max_examples=150, deadline=None)
def test_no_change_of_writing_hides_a_row(index, row, changes, seed):
    dice, text = random.Random(seed), ROWS[row]
    for change in sorted(changes, key=CHANGES.index):
        text = change(dice, text)
    assert row in rows_in(index, text), text


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from(range(len(ROWS))))
@example("<b", "", 0)
@example("\\begin{", "}", 1)
@example("[a](", ")", 0)
@settings(max_examples=150, deadline=None)
def test_nothing_around_a_row_hides_it(index, before, after, row):
    (best, *_) = index.find(f"{before}\n\n{ROWS[row]}\n\n{after}")
    assert best.row == row and best.share > 0.5


@pytest.mark.parametrize(
    ("written", "also"),
    [
        (r"Let $\frac{1}{2} \le \alpha \times \sqrt{x^2+y^2}$ for 10{,}000 \text{cm} of \left( red \right) rope",
         "Let 1/2 ≤ α × √(x² + y²) for 10000 cm of (red) rope"),
        (r"Evaluate \[\begin{align*} \sin(\pi/3) &+ \dfrac{7}{8}\end{align*}\] and \textbf{round} it up to \$5",
         "Evaluate $$sin(π/3) + 7/8$$, and **round** it up to $5"),
        ("He paid 1,234,567 dollars for the old house near the lake in the year of the flood",
         "He paid 1\u00a0234\u202f567 dollars for the old house\\nNear the lake in the year of the flood"),
    ],
)  # fmt: skip
def test_formulas_and_numbers_have_one_form(written, also):
    index = index_of(written, n=8)
    assert [match.share for match in index.find(also)] == [1.0]


def test_short_rows_are_looked_for_whole(index):
    place = len(ROWS)
    assert rows_in(index, f"Yesterday {SHORT[0].lower()} out, said she.") == {place}
    assert rows_in(index, SHORT[0].replace("water", "beer")) == set()
    assert rows_in(index, "**Compute** $\\sin 60$ degrees!") == {place + 1}
    assert rows_in(index, f"First: {SHORT[1]}, then go on.") == set()


@given(st.integers(0, len(ROWS) - 1), st.integers(0, 30), st.integers(8, 12))
@settings(max_examples=60, deadline=None)
def test_a_short_text_is_looked_for_in_rows(index, row, start, size):
    """Of words of two letters and more: each weighs the same."""
    words = [word for word in ROWS[row].split() if len(word) > 1]
    index = index_of(" ".join(words))
    if len(words) >= start + size and words[0].isascii():
        text = " ".join(words[start : start + size])
        assert rows_in(index, text.upper()) == {0}
        assert rows_in(index, f"{text} zebra") == set()
        assert rows_in(index, f"Once {text} upon a time long ago there was a king who had it") == set()


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_long_text_is_searched_to_its_end(index, row):
    filler = "Nothing of interest is here, in words that follow one another. " * 2500
    for size in (65_400, 65_536, 131_000):
        matches = index.find(f"{filler[:size]}\n{ROWS[row]}\n{filler[: 150_000 - size]}")
        assert [(match.row, match.share) for match in matches] == [(row, 1.0)]


# What does not.


def test_what_all_rows_say_is_no_leak():
    wording = "Please answer the following question with the letter of the one right choice and nothing else:"
    rows = [f"{wording} {one * 3} {one}" for one in "abcdefghijklmnop"]
    assert index_of(*rows).find(wording) == []
    assert len(index_of(*rows[:5]).find(wording)) == 5


def test_tables_and_counting_are_no_leak():
    index = index_of("Sort these numbers: " + " ".join(map(str, range(1, 20))) + " 0" * 40)
    assert index.find("Pages: " + " ".join(map(str, range(1, 20)))) == []
    assert index.find("0 " * 500) == []


def test_a_row_is_found_though_many_rows_are_alike():
    passage = (
        "The old mill by the river was built in the year of the flood and has ground no corn since then."
    )
    same = [f"{passage}"] * 20
    assert len(index_of(*same).find(passage)) == 20
    rows = [f"{passage} {one}" for one in "abcdefghijklmnop"]
    (found,) = index_of(*rows).find(f"So: {rows[3]} and on")
    assert found.row == 3 and found.share == 1


# Renamed rows.


def test_other_names_and_numbers():
    told = ROWS[0].replace("Natalia", "Bob Miller").replace("of her", "of his").replace("she", "he")
    plain, named = index_of(ROWS[0]), index_of(ROWS[0], masks=Masks(names=True))
    numbered = index_of(ROWS[0], masks=Masks(names=True, numbers=True))
    assert [index.find(told)[0].share if index.find(told) else 0 for index in (plain, named)] == [0, 1]
    told = told.replace("48", "52")
    assert named.find(told)[0].share < 1 and numbered.find(told)[0].share == 1


# Against plain Python.

WORDS = ("a", "the", "cat", "dog", "sat", "on", "mat", "7", "12", "b")


def plain_matches(rows: list[str], text: str, n: int) -> dict[int, float]:
    """Of texts of lower case words; a single letter or digit counts half."""

    def weight(words: list[str]) -> int:
        return sum(1 if len(word) == 1 else 2 for word in words)

    def grams(words: list[str]) -> set[tuple[str, ...]]:
        found = set()
        for start in range(len(words)):
            end = start
            while end < len(words) and weight(words[start:end]) < 2 * n:
                end += 1
            gram = words[start:end]
            named = sum(word.isalpha() and len(word) > 1 for word in gram)
            if weight(gram) >= 2 * n and len({*gram}) >= 4 and named >= 2:
                found.add(tuple(gram))
        return found

    own = [grams(row.split()) for row in rows]
    seen, words, matches = grams(text.split()), text.split(), defaultdict(float)
    for number, row in enumerate(rows):
        if own[number] & seen:
            matches[number] = len(own[number] & seen) / len(own[number])
        size = len(row.split())
        starts = range(len(words) - size + 1)
        is_short = 8 <= weight(row.split()) < 2 * n
        if is_short and any(words[start : start + size] == row.split() for start in starts):
            matches[number] = 1.0
    return matches


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)


@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=6).map(" ".join))
@settings(max_examples=150, deadline=None)
def test_matches_are_those_of_plain_python(rows, text):
    index = build_index([RowTexts(0, (row,)) for row in rows], Grams(5, 8, least=4), Masks())
    assert {match.row: match.share for match in index.find(text)} == plain_matches(rows, text, 5)


# As a step.


def write(path: Path, rows: list[Any]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return str(path)


def chat(*turns: str) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user" if place % 2 == 0 else "assistant", "content": turn}
            for place, turn in enumerate(turns)
        ]
    }


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".tsv", ".csv", ".txt.xz", ".jsonl.xz"])
def test_benchmarks_are_read_in_every_form(tmp_path, suffix):
    file, rows = tmp_path / f"bench{suffix}", ROWS[:2]
    match suffix.removesuffix(".xz"):
        case ".jsonl":
            text = "\n".join(json.dumps({"id": 1, "question": row}) for row in rows)
        case ".json":
            text = json.dumps({"version": 1, "data": [{"messages": chat(row)["messages"]} for row in rows]})
        case ".tsv":
            text = "\n".join(f"{row}\t42" for row in rows)
        case ".csv":
            text = "id,question\n" + "\n".join(f'7,"{row}"' for row in rows)
        case _:
            text = "\n".join(rows)
    file.write_bytes(lzma.compress(text.encode()) if suffix.endswith(".xz") else text.encode())
    step = Decontaminate.model_validate({"against": str(file)})
    step.preflight()
    search = step.open_search()
    assert [leak.place for leak in search(Document(id="a", text=f"So: {ROWS[1]} Well."))] == ["bench:2"]


def test_part_and_n_follow_what_is_read(tmp_path):
    file = write(
        tmp_path / "bench.jsonl", [{"question": ROWS[0]}, {"question": " ".join(ROWS[1].split()[:15])}]
    )
    step = {"against": [file]}
    everything, prompts = (
        Decontaminate.model_validate(step | {"part": part}).open_search() for part in ("all", "prompt")
    )
    split = " ".join(ROWS[0].split()[:12]), " ".join(ROWS[0].split()[12:])
    answered = with_row(Document(id="a"), chat("Tell me one.", ROWS[0]))
    assert [leak.place for leak in everything(answered)] == ["bench:1"] and not prompts(answered)
    assert everything(with_row(Document(id="a"), chat(*split)))
    problem = with_row(
        Document(id="p"), {"prompt": " ".join(ROWS[0].split()[:15]), "answer": "1", "data_source": "x"}
    )
    assert everything(problem)
    longer = [
        Document(id="d", text=f"{text} at noon") for text in (problem.text, " ".join(ROWS[0].split()[:16]))
    ]
    assert [bool(everything(document)) for document in longer] == [False, True]


def test_a_curation_counts_leaked_rows_and_notices_another_benchmark(tmp_path):
    folder = tmp_path / "gsm8k"
    folder.mkdir()
    (tmp_path / "math").mkdir()
    files = [
        write(folder / "test.jsonl", [{"question": ROWS[0]}, {"question": ROWS[1]}]),
        write(tmp_path / "math/test.jsonl", [{"problem": ROWS[5]}, {"problem": "7?"}]),
    ]
    rows = [
        chat("Hi", "Hello."),
        chat(ROWS[0].upper(), "72."),
        chat(f"{ROWS[1]} {ROWS[0]}", "…"),
        chat("Oh", "Ah."),
    ]
    source = {"path": write(tmp_path / "chats.jsonl", rows), "holds": "conversations", "name": "c"}
    step = {"name": "decontaminate", "against": files}

    def recipe() -> CurationRecipe:
        table = {"out": str(tmp_path / "out"), "source": source, "step": [dict(step)]}
        return build_curation(table | {"sink": {"compression": "none"}, "cluster": {"workers": 1}})

    summary = curate(recipe())
    assert summary.kept == 2
    assert summary.decided["1 decontaminate"] == {
        "leaking_documents": 2,
        "gsm8k/test": {"rows": 2, "leaked_rows": 2, "documents": 2, "unsearched_rows": 0},
        "math/test": {"rows": 2, "leaked_rows": 0, "documents": 0, "unsearched_rows": 1},
    }
    second = len(json.dumps(rows[0], ensure_ascii=False)) + 1
    shown = layout(explain(recipe(), f"c/chats.jsonl:{second}"))
    assert 'leaked (gsm8k/test:1 (1.00 of its n-grams): "NATALIA SOLD' in " ".join(shown.split())
    write(folder / "test.jsonl", [{"question": ROWS[2]}])
    with pytest.raises(ValueError, match=r"other files of step#1 \(decontaminate\)"):
        curate(recipe())


def test_what_leaks_may_stay_with_a_note(tmp_path):
    step = Decontaminate.model_validate(
        {"against": write(tmp_path / "b.jsonl", [{"question": ROWS[0]}]), "keep": "all"}
    )
    step.collect([Document(id="a\ud800", text=ROWS[0]), Document(id="b")], tmp_path / "features")
    figures = step.decide([tmp_path / "features"], [tmp_path / "decisions"], tmp_path)
    apply = step.open(tmp_path / "decisions")
    kept = apply(0, Document(id="a\ud800", text=ROWS[0]))
    assert isinstance(kept, Document) and kept.metadata == {"leaks": ["b:1"]}
    assert figures["leaking_documents"] == 1
    with pytest.raises(ValueError, match="not on c"):
        apply(0, Document(id="c"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "no/such.jsonl"}, "does not exist"),
        ({"path": "b.jsonl", "columns": "prompt"}, "no text in prompt; its columns are question"),
    ],
)
def test_what_is_wrong_with_a_benchmark_is_said_first(tmp_path, monkeypatch, entry, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "b.jsonl", [{"question": ROWS[0]}])
    with pytest.raises(ValueError, match=message):
        Decontaminate.model_validate({"against": entry}).preflight()


@pytest.mark.parametrize(
    ("against", "message"),
    [
        (["a/b.jsonl", "./a/b.jsonl"], "two files have the name a/b"),
        (["b.pdf"], "convert it"),
        (["x/*.jsonl"], "no file matches"),
    ],
)
def test_keys_are_checked(against, message):
    table = {"out": "x", "source": [{"path": "in"}], "step": [{"name": "decontaminate", "against": against}]}
    with pytest.raises(RecipeError, match=message):
        build_curation(table)
