"""Conversations and problems through a curation: read in any form, written as `foresail sft` and `rl` read them."""

import json
from pathlib import Path

import pytest

from foresail.curate.curation import curate
from foresail.curate.document import Document, Drop
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.rows.conversation import conversation_row
from foresail.curate.rows.row import read_row, with_row
from foresail.data.chats.conversations import load_chats
from foresail.data.problems.problems import load_problems
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.tables.parts import Problems

pytestmark = pytest.mark.usefixtures("forked_workers_of_pieces")

CALL = {"name": "add", "arguments": {"a": 2, "b": 2}}
CHATS = [
    {"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4", "train": True}]},
    {"prompt": "3+3?", "completion": "6", "source": "made"},
    {
        "instruction": "Add.",
        "input": "2 2",
        "output": "4",
        "history": [["Hi", "Hello"]],
        "system": "Be brief.",
    },
    {
        "conversations": [
            {"from": "human", "value": "2+2?"},
            {"from": "function_call", "value": json.dumps(CALL)},
            {"from": "observation", "value": "4"},
            {"from": "gpt", "value": "It is 4."},
        ],
        "tools": json.dumps([{"name": "add", "parameters": {"type": "object"}}]),
        "enable_thinking": False,
    },
]


def recipe(out: Path, path: str, holds: str, *steps: dict, **keys: str) -> CurationRecipe:
    source = {"path": path, "holds": holds, "name": "rows", **keys}
    table = {"out": str(out), "source": [source], "step": [*steps], "sink": [{"compression": "none"}]}
    return build_curation(table | {"cluster": {"workers": 1}})


def write_rows(path: Path, rows: list) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_conversations_come_out_as_they_were_read(tmp_path):
    source = write_rows(tmp_path / "chats.jsonl", CHATS)
    curate(recipe(tmp_path / "out", source, "conversations", {"name": "minhash"}))
    (written,) = (tmp_path / "out" / "documents").iterdir()
    before, after = load_chats(source), load_chats(written)
    assert [(chat.messages, chat.tools, chat.thinking) for chat in after] == [
        (chat.messages, chat.tools, chat.thinking) for chat in before
    ]
    assert json.loads(written.read_text().splitlines()[1])["source"] == "made"


def test_problems_come_out_as_they_were_read(tmp_path):
    rows = [
        {"q": {"text": "2+2?"}, "gold": 4, "note": "a"},
        {"q": {"text": "3+3?"}, "gold": "6", "note": "b"},
    ]
    source = write_rows(tmp_path / "problems.jsonl", rows)
    keys = {"prompt_key": "q.text", "answer_key": "gold"}
    curate(recipe(tmp_path / "out", source, "problems", {"name": "exact_duplicates"}, **keys))
    (written,) = (tmp_path / "out" / "documents").iterdir()
    before, after = (
        load_problems(Problems(source=str(file), **extra)) for file, extra in ((source, keys), (written, {}))
    )
    assert [(one.prompt, one.answer) for one in after] == [(one.prompt, one.answer) for one in before]
    assert [one.extra["note"] for one in after] == ["a", "b"]
    assert {one.source for one in after} == {"rows"}


@pytest.mark.parametrize("holds", ["problems", "conversations"])
def test_a_generator_is_a_source(tmp_path, holds):
    made = "word-problems:count=1100,seed=3"
    summary = curate(recipe(tmp_path / "out", made, holds))
    (written,) = (tmp_path / "out" / "documents").iterdir()
    assert summary.inputs == 1100
    if holds == "problems":
        assert [one.id for one in load_problems(Problems(source=str(written)))] == [
            one.id for one in load_problems(Problems(source=made))
        ]
    else:
        assert [chat.messages for chat in load_chats(written)] == [chat.messages for chat in load_chats(made)]


@pytest.mark.parametrize(
    ("columns", "held", "reason"),
    [
        ({"text": "Once"}, "conversations", "no_conversation"),
        ({"messages": [{"role": "user", "content": "2+2?"}]}, "conversations", "no_conversation"),
        ({"messages": [{"role": "king", "content": "2+2?"}]}, "conversations", "no_conversation"),
        ({"messages": []}, "conversations", "no_conversation"),
        ({"answer": "4"}, "problems", "no_problem"),
        ({"prompt": " ", "answer": "4"}, "problems", "no_problem"),
    ],
)
def test_a_row_of_something_else_is_counted(columns, held, reason):
    dropped = read_row(columns, "rows:0", "rows", held)
    assert isinstance(dropped, Drop) and dropped.reason == reason and dropped.detail


def test_the_text_follows_the_row():
    document = with_row(Document(id="a"), conversation_row(CHATS[3], "a"))
    call = '{"arguments": {"a": 2, "b": 2}, "name": "add"}'
    assert document.text.split("\n\n") == ["2+2?", call, "4", "It is 4."]


def test_a_step_that_changes_text_takes_no_rows(tmp_path):
    with pytest.raises(
        RecipeError, match=r"step#1 \(mask_pii\) takes documents, and what comes to it are conv"
    ):
        recipe(
            tmp_path / "out", write_rows(tmp_path / "a.jsonl", CHATS), "conversations", {"name": "mask_pii"}
        )


def test_sources_that_hold_different_things_are_two_recipes(tmp_path):
    file = write_rows(tmp_path / "a.jsonl", CHATS)
    sources = [{"path": file}, {"path": file, "holds": "problems"}]
    with pytest.raises(RecipeError, match="the sources hold documents and problems; write a recipe for each"):
        build_curation({"out": str(tmp_path / "out"), "source": sources})


def test_only_jsonl_takes_rows(tmp_path):
    source = {"path": "a.jsonl", "holds": "problems"}
    with pytest.raises(RecipeError, match='a sink of kind = "parquet" takes documents; use jsonl'):
        build_curation({"out": "out", "source": [source], "sink": [{"kind": "parquet"}]})
