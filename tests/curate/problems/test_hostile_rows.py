"""Rows of problems with anything in any column: each is kept or dropped by a reason, and no step fails on one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from code_rows import CODE
from planted_faults import sound

from foresail.curate.document import Document, Drop
from foresail.curate.read.source import read_documents
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.rows.row import read_row, sink_row
from foresail.curate.run.chain import Chain
from foresail.curate.run.plan import pieces_of
from foresail.data.problems.problems import ANSWER_KEYS, PROMPT_KEYS

COLUMNS = [
    *PROMPT_KEYS, *ANSWER_KEYS, "messages", "id", "level", "type", "topic", "meta", "metadata", "code",
    "completion", "entry_point", "canonical_solution", "test_setup_code", "base_input", "starter_code",
    "reward_model", "data_source", "enable_thinking", "tools", "pass_rate", "made", "extra_info", "atol",
    "prelude", "levels",
]  # fmt: skip
TEXTS = [
    "", "   ", "\ud800", "\udfff\ud800", "\u0000", "\u202e abc", "a" * 50_000, "(" * 9000, "{" * 5000,
    "\\frac{" * 2000, "$" * 999, "\\boxed{" * 2000, "9" * 6000, "1e999999", "10^{10^{10^{10}}}", "99999!",
    "\\sqrt" * 900, "nan", "-0", "1/0", "[1,2", '{"a":1}', "<|im_end|>", "assert f()==1", "1," * 9000,
    "def f(): return f()",
    "\U0010ffff" * 99, "A) 1 B) 2", "Prove that", "?" * 3000, "Find x.\n" * 900, "一" * 999, "-" * 5000,
]  # fmt: skip
NUMBERS = [
    0, -1, 1e308, 1e-320, 10**400, -(10**3000), float("nan"), float("inf"), 2**63, True, False, None, 0.1, 3.0,
]  # fmt: skip
NOT_ROWS = [
    "null",
    "[]",
    "{",
    '{"a":',
    '"x"',
    "\x00",
    '{"problem":"a","problem":"b"}',
    "[" * 9000,
    '{"a":' * 9000,
]


def any_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(TEXTS)
    if kind < 0.6 or depth > 3:
        return rng.choice(NUMBERS)
    if kind < 0.75:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 0.85:
        return [{"role": rng.choice(["user", "assistant", "x", 1]), "content": any_value(rng, depth + 1)}]
    names = [*COLUMNS, "role", "content", "inputs", "outputs", "kind", "", ".", "a.b"]
    return {rng.choice(names): any_value(rng, depth + 1) for _ in range(rng.randrange(4))}


def any_row(rng: random.Random) -> dict[str, Any]:
    row = dict(rng.choice([sound(rng), rng.choice(CODE)])) if rng.random() < 0.85 else {}
    for _ in range(rng.choice([1, 1, 2, 3])):
        row[rng.choice(COLUMNS if rng.random() < 0.6 or not row else [*row])] = any_value(rng)
    return row


def recipe(folder: Path, samples: Path) -> CurationRecipe:
    steps = [
        {"name": "problem_kind"},
        {"name": "code_prompt"},
        {"name": "problem_form", "choices": "open"},
        {"name": "check_answers"},
        {"name": "majority", "responses": str(samples)},
        {"name": "same_problems"},
        {"name": "pass_rates", "key": "pass_rate"},
        {"name": "balance", "most": 5},
    ]
    source = {"path": str(folder / "rows.jsonl"), "holds": "problems"}
    return build_curation(
        {"out": str(folder / "out"), "source": [source], "step": steps, "sink": [{"kind": "jsonl"}]}
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_each_row_is_kept_or_dropped_by_a_reason(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="the extra curate is not installed")
    rng = random.Random(seed)
    rows = [any_row(rng) for _ in range(150)]
    (tmp_path / "samples.jsonl").write_text(
        "".join(
            json.dumps({"problem": "p", "responses": ["\\boxed{3}"] * 4, "id": n}) + "\n" for n in range(2)
        )
    )
    lines = [json.dumps(row) for row in rows if not is_too_long(row)] + NOT_ROWS
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    own = recipe(tmp_path, tmp_path / "samples.jsonl")
    documents, reasons, read_count = [], [], 0
    alone = Chain([step for step in own.steps if not hasattr(step.settings, "decide")])
    for piece in pieces_of(own):
        for _, read in read_documents(piece):
            read_count += 1
            if isinstance(read, Drop):
                reasons.append(read.reason)
                continue
            (result,) = alone.run([read])
            reasons += [dropped.reason for dropped in result.dropped]
            documents += result.kept
    assert read_count == len(lines) == len(documents) + len(reasons)
    for step in own.steps:
        if hasattr(step.settings, "decide"):
            documents = decided(step.settings, documents, tmp_path)
    assert "failed" not in reasons and "unreadable" not in reasons
    for document in documents:
        json.dumps(sink_row(document), ensure_ascii=False, allow_nan=False).encode()


def is_too_long(row: Any) -> bool:
    """Integers of more than 4,300 digits are not what `json` writes."""
    try:
        json.dumps(row)
    except ValueError:
        return True
    return False


def decided(step: Any, documents: list[Document], folder: Path) -> list[Document]:
    step.collect(iter(documents), folder / "features")
    step.decide([folder / "features"], [folder / "decisions"], folder)
    apply = step.open(folder / "decisions")
    outcomes = [apply(number, document) for number, document in enumerate(documents)]
    return [outcome for outcome in outcomes if isinstance(outcome, Document)]


def test_a_problem_with_messages_beside_it_is_no_conversation() -> None:
    """Sets for SFT and RL have a question, an answer and a conversation in one row."""
    row = {"question": "What is 2 + 2?", "answer": "4", "messages": [{"role": "user", "content": "secret"}]}
    read = read_row(row, "a:1", "a", "problems")
    assert isinstance(read, Document) and read.text == "What is 2 + 2?"
    assert read.row is not None and read.row["source_messages"] == row["messages"]
    own = read_row({"messages": [{"role": "user", "content": "2 + 2?"}], "answer": "4"}, "a:2", "a", "problems",
                   prompt_key="messages")  # fmt: skip
    assert isinstance(own, Document) and own.text == "2 + 2?"
