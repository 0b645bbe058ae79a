"""Responses of a query: beside a search by hand through exact sets, in any order, and what one query is."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_seed import random_seed
from small_recipe import output_files

from foresail.curate.conversations.cap_responses import CapResponses
from foresail.curate.conversations.query import query_of, same_wording
from foresail.curate.conversations.response_choice import quality_ranks
from foresail.curate.curation import curate
from foresail.curate.deduplicate.semantic import number_of
from foresail.curate.deduplicate.shingles import shingles
from foresail.curate.document import Document, Drop
from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.curate.rows.row import read_row

EXACT = 4096  # permutations: an estimate is then off by 0.03 at most, four times its deviation


def chat(id: str, *contents: str, quality: Any = None, **columns: Any) -> Document:
    """User and assistant in turns."""
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": content}
        for place, content in enumerate(contents)
    ]
    return conversation(id, messages, quality, **columns)


def conversation(id: str, messages: list[dict[str, Any]], quality: Any = None, **columns: Any) -> Document:
    document = read_row({"messages": messages, **columns}, id, "made", "conversations")
    assert isinstance(document, Document)
    document.metadata.update({} if quality is None else {"quality": quality})
    return document


def messages_of(document: Document) -> list[dict[str, Any]]:
    assert document.row is not None
    messages: list[dict[str, Any]] = document.row["messages"]
    return messages


def decided(
    documents: list[Document], cuts: tuple[int, ...] = (), **keys: Any
) -> tuple[dict[str, Document | Drop], dict[str, Any]]:
    step = CapResponses(**keys)
    ends = [0, *cuts, len(documents)]
    pieces = [documents[begin:end] for begin, end in pairwise(ends)]
    outcomes: dict[str, Document | Drop] = {}
    with TemporaryDirectory() as path:
        folder = Path(path)
        features, decisions = ([folder / f"{kind}{n}" for n in range(len(pieces))] for kind in "fd")
        for file, piece in zip(features, pieces, strict=True):
            step.collect(iter(piece), file)
        (folder / "scratch").mkdir()
        figures = step.decide(features, decisions, folder / "scratch")
        for file, piece in zip(decisions, pieces, strict=True):
            settle = step.open(file)
            for number, document in enumerate(piece):
                outcome = settle(number, document)
                assert isinstance(outcome, Document | Drop)
                outcomes[document.id] = outcome
    return outcomes, figures


def described(outcomes: dict[str, Document | Drop]) -> dict[str, Any]:
    return {
        name: (outcome.reason, outcome.detail) if isinstance(outcome, Drop) else outcome.metadata
        for name, outcome in outcomes.items()
    }


def ranking(outcomes: dict[str, Document | Drop]) -> list[str]:
    """Ids of one query's responses that stay, the first chosen in front."""
    staying = {n: one.metadata["response_rank"] for n, one in outcomes.items() if isinstance(one, Document)}
    assert sorted(staying.values()) == [*range(1, len(staying) + 1)]
    return sorted(staying, key=staying.__getitem__)


def jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def made_responses(rng: random.Random) -> list[Document]:
    """Some like each other, some the same but for layout, some without a number."""
    words = [f"w{number}" for number in range(rng.choice((12, 60)))]
    texts: list[str] = []
    for _ in range(rng.randrange(1, 30)):
        text = " ".join(rng.choices(words, k=rng.randrange(0, 40)))
        if texts and rng.random() < 0.5:
            changed = rng.choice(texts).split()
            for _ in range(rng.randrange(0, 4)):
                changed[rng.randrange(len(changed)) if changed else 0 : 1] = [rng.choice(words)]
            text = rng.choice((" ", "\n", "  ")).join(changed)
        texts.append(rng.choice((text, text.upper())))
    numbers = (None, 0, 1, 2.5, 4, "much", float("nan"))
    names = rng.sample(range(1000), len(texts))
    return [
        chat(f"{name}", "Q", text, quality=rng.choice(numbers))
        for name, text in zip(names, texts, strict=True)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_each_choice_is_the_best_by_exact_sets(seed: int) -> None:
    rng = random.Random(seed)
    documents = made_responses(rng)
    limit, weight = rng.randrange(1, 12), rng.choice((0.0, 0.3, 0.7, 1.0))
    outcomes, figures = decided(
        documents, limit=limit, quality_weight=weight, best="quality", permutations=EXACT, memory_gib=1e-6
    )
    by_id = {document.id: document for document in documents}
    text = {name: messages_of(document)[-1]["content"] for name, document in by_id.items()}
    sets = {name: {*shingles(own, 3, 5)} for name, own in text.items()}
    numbers = {name: number_of(document, "quality") for name, document in by_id.items()}
    ranks = {name: slow_rank(numbers[name], [*numbers.values()]) for name in by_id}
    order = sorted(by_id, key=lambda name: (-ranks[name], name.encode()))
    different: dict[str, str] = {}
    for name in order:
        different.setdefault(" ".join(text[name].lower().split()), name)
    left = [*different.values()]
    for name in order:
        first = different[" ".join(text[name].lower().split())]
        if first != name:
            outcome = outcomes[name]
            assert outcome == Drop("same_response", f"repeats {first}"), seed
    chosen: list[str] = []
    for name in ranking(outcomes):
        scores = {
            one: weight * ranks[one]
            + (1 - weight) * (1 - max((jaccard(sets[one], sets[other]) for other in chosen), default=0.0))
            for one in left
        }
        assert scores[name] >= max(scores.values()) - 0.06 * (1 - weight) - 1e-9, (seed, name, scores)
        if not chosen or weight == 1:  # nothing is estimated
            assert name == next(one for one in left if scores[one] >= max(scores.values()) - 1e-9), seed
        chosen.append(name)
        left.remove(name)
    assert len(chosen) == min(limit, len(different)) and figures["over_limit"] == len(left)
    for name in left:
        assert outcomes[name] == Drop("over_limit", f"{limit} of {len(different)} different responses stay")
    assert figures["same_response"] == len(documents) - len(different)


def slow_rank(number: float, numbers: list[float]) -> float:
    known = [one for one in numbers if one > -float("inf")]
    if number == -float("inf"):
        return 0.0
    return (sum(one < number for one in known) + sum(one <= number for one in known)) / (2 * len(known))


def test_ranks_of_the_quality() -> None:
    assert quality_ranks(np.array([5, 1, -np.inf, 5])).tolist() == [2 / 3, 1 / 6, 0, 2 / 3]
    assert quality_ranks(np.full(3, -np.inf)).tolist() == [0, 0, 0]
    assert number_of(Document(id="a", metadata={"q": 10**400}), "q") == -float("inf")


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6), cuts=st.sets(st.integers(0, 60), max_size=4), weight=st.sampled_from((0, 0.5))
)
def test_neither_the_order_of_rows_nor_pieces_matter(seed: int, cuts: set[int], weight: float) -> None:
    rng = random.Random(seed)
    documents = [
        chat(f"{query}.{number}", f"Query {query}", " ".join(rng.choices("abcd", k=rng.randrange(1, 9))))
        for query in range(4)
        for number in range(rng.randrange(1, 15))
    ]
    shuffled = rng.sample(documents, len(documents))
    keys: dict[str, Any] = {"limit": 3, "quality_weight": float(weight)}
    whole, figures = decided(documents, **keys)
    parts, own_figures = decided(
        shuffled, cuts=tuple(sorted(min(cut, len(shuffled)) for cut in cuts)), **keys
    )
    assert described(whole) == described(parts) and figures == own_figures


def test_a_response_that_is_unlike_goes_before_one_that_is_better() -> None:
    story = "the ship left the harbour at dawn and came back with fish"
    rows = [
        ("a", f"{story} .", 9),
        ("b", f"{story} today", 8),
        ("c", "no vessel sails in winter here at all", 1),
    ]
    documents = [chat(name, "Tell.", text, quality=number) for name, text, number in rows]
    assert ranking(decided(documents, limit=2, best="quality", quality_weight=0.4)[0]) == ["a", "c"]
    assert ranking(decided(documents, limit=2, best="quality", quality_weight=1.0)[0]) == ["a", "b"]
    assert ranking(decided(documents, limit=3, best="quality", quality_weight=0.0)[0]) == ["a", "c", "b"]


ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 2}}}


def test_what_one_query_is() -> None:
    same = [
        chat("plain", "What is x^2 - “one” here?", "A"),
        chat("layout", "  what is\nx² – ＂One＂ \u200bhere？", "B"),
        chat("more", 'What is x^2 - "one" here?', "C", "Thanks!"),  # what follows the last answer
    ]
    others = [
        chat("turns", "What is x^2 - “one” here?", "A", "And now?", "D"),
        chat("other turn", "What is x^2 - “one” here?", "B", "And now?", "D"),
        conversation(
            "system",
            [
                {"role": "system", "content": "Be brief."},
                *messages_of(chat("", "What is x^2 - “one” here?", "A")),
            ],
        ),
        chat("tools", "What is x^2 - “one” here?", "A", tools=[ADD]),
        chat("number", "What is x2 - “one” here?", "A"),
        chat("sign", "What is x^2 + “one” here?", "A"),
    ]
    outcomes, figures = decided([*same, *others], limit=1)
    stays = [name for name, outcome in outcomes.items() if isinstance(outcome, Document)]
    assert stays == ["layout", *(one.id for one in others)]
    counts = {
        "queries": 7,
        "queries_over_limit": 1,
        "over_limit": 2,
        "most_responses": 3,
    }
    assert {name: figures[name] for name in counts} == counts


def test_ids_of_calls_make_no_other_query_and_arguments_do() -> None:
    def called(id: str, argument: int) -> Document:
        call = CALL | {"id": id, "function": {"name": "add", "arguments": {"a": argument}}}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "Add."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "4", "tool_call_id": id},
            {"role": "assistant", "content": f"It is {id}."},
        ]
        return conversation(id, messages, tools=[ADD])

    outcomes, _ = decided([called("x", 2), called("y", 2), called("z", 3)], limit=1)
    assert [isinstance(outcome, Document) for outcome in outcomes.values()] == [True, False, True]
    ends_in_call = query_of({"messages": messages_of(called("x", 2))[:2]})
    assert '\\"a\\": 2' in ends_in_call.answered


DIFFERENT = (("má", "mà"), ("มา", "ม้า"), ("2+3", "2-3"), ("2^{x+1}", "2^x+1"), ("23", "2³"), ("1.5", "15"))
EQUAL = (("ＡＢ １", "ab 1"), ("e\u0301", "É"), ("don’t — go", "don't - go"), ("a\u00a0\u200db", "A b"))


def test_tones_and_signs_are_other_words() -> None:
    assert all(same_wording(one) != same_wording(other) for one, other in DIFFERENT)
    assert all(same_wording(one) == same_wording(other) for one, other in EQUAL)


def test_no_rows_and_rows_without_words(tmp_path: Path) -> None:
    assert decided([])[1]["queries"] == 0
    outcomes, _ = decided([chat("a", "", ""), chat("b", "", "…"), chat("c", "", " ")], limit=2)
    assert outcomes["c"] == Drop("same_response", "repeats a") and ranking(outcomes) == ["a", "b"]


ROWS = 150


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of responses to 30 queries, and a run in one go."""
    folder, rng = tmp_path_factory.mktemp("whole"), random.Random(0)
    for name in "ab":
        rows = [
            {
                "id": f"{name}{number}",
                "messages": messages_of(
                    chat("", f"Q {rng.randrange(30)}", " ".join(rng.choices("abcdefg", k=6)))
                ),
                "quality": rng.randrange(5),
            }
            for number in range(ROWS)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    curate(recipe_in(folder, folder / "whole"))
    return folder


def recipe_in(folder: Path, out: Path) -> CurationRecipe:
    return build_curation(
        {
            "out": str(out),
            "source": [{"path": str(folder / "*.jsonl"), "holds": "conversations"}],
            "step": [{"name": "cap_responses", "limit": 4, "best": "quality"}],
            "sink": [{"kind": "jsonl"}],
            "cluster": {"workers": 1},
        }
    )


def run_as_group(folder: Path, out: Path) -> None:
    os.setsid()
    curate(recipe_in(folder, out))


def files_below(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))


def kill_at(folder: Path, out: Path, files: int) -> None:
    """Kill the whole process group once there are so many files, or let it come to its end."""
    process = multiprocessing.get_context("fork").Process(target=run_as_group, args=(folder, out))
    process.start()
    assert process.pid is not None
    while process.is_alive() and files_below(out) < files:
        time.sleep(0.001)
    if process.is_alive() and os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    rng, out = random.Random(random_seed()), tmp_path / "killed"
    files = rng.randrange(1, files_below(whole / "whole"))
    kill_at(whole, out, files)
    curate(recipe_in(whole, out))
    assert output_files(out) == output_files(whole / "whole"), files
