"""The step `judge`: labels, thresholds, conversations, and documents that get no verdict."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from answering_server import AnsweringServer

from foresail.curate.asking.cache import AnswerCache
from foresail.curate.curation import curate
from foresail.curate.document import Document, Drop
from foresail.curate.judging.step import JudgeStep
from foresail.curate.recipe import build_curation
from foresail.curate.rows.row import with_row
from foresail.data.zst import open_zst
from foresail.recipe.reading.load import RecipeError

CHAT = [
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "level 9"},
    {"role": "user", "content": "second"},
    {"role": "assistant", "content": "level 3"},
    {"role": "user", "content": "third"},
]


def say_level(question: str, count: int) -> str:
    """The last level that the judged text names, as every rubric's."""
    *_, level = re.findall(r"level (\d+)", question.partition("Judge the ")[0]) or ["0"]
    names = re.findall(r'"(\w+_[0-9a-f]{6})": ', question.rpartition("Answer with one")[2])
    values = {name: "maths" if name.startswith("domain") else int(level) for name in names}
    return json.dumps(values) if int(level) < 90 else "no idea"


def open_step(server: AnsweringServer, **keys: Any) -> JudgeStep:
    answerer = {"endpoint": server.url, "model": "m", "patience": 0.0}
    step = JudgeStep.model_validate({"answerer": answerer, "rubrics": ["quality"], **keys}, strict=False)
    step.preflight()
    return step


def test_labels_come_into_metadata_and_thresholds_drop() -> None:
    texts = ["level 3", "level 7", "level 99", " "]
    documents = [Document(id=str(number), text=text) for number, text in enumerate(texts)]
    with AnsweringServer(say_level) as server:
        rubrics = [{"name": "quality", "least": 5}, {"name": "domain", "only": ["maths"]}]
        step = open_step(server, rubrics=rubrics)
        low, high, unjudged, empty = step.open_asking(AnswerCache())(documents)
        unchanged, *_ = open_step(server, unjudged="keep").open_asking(AnswerCache())(documents[2:])
    assert low == Drop("low_quality", "3, at least 5 is required")
    assert isinstance(high, Document) and high.metadata == {"quality": 7, "domain": "maths"}
    assert unjudged == Drop("no_json", "'no idea' is not JSON") and empty == Drop("nothing_to_judge")
    assert unchanged == documents[2]


def test_of_a_conversation_the_last_answer_is_judged_in_its_context() -> None:
    document = with_row(Document(id="c"), {"messages": CHAT})
    with AnsweringServer(say_level) as server:
        (judged,) = open_step(server).open_asking(AnswerCache())([document])
        (request,) = server.requests
    assert isinstance(judged, Document) and judged.metadata == {"quality": 3}
    asked = request["messages"][-1]["content"]
    assert asked.count("<<from user ") == 2 and asked.count("<<from assistant ") == 1 and "third" not in asked
    assert asked.count("<<answer ") == 1 and "level 9" in asked


def test_a_recipe_judges_conversations_and_tells_what_it_may_cost(tmp_path: Path) -> None:
    rows = [{"messages": [*CHAT[:3], {"role": "assistant", "content": f"level {n}"}]} for n in range(8)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    costs: list[Any] = []
    with AnsweringServer(say_level) as server:
        step = {"name": "judge", "rubrics": [{"name": "quality", "least": 4}]}
        table = {
            "out": str(tmp_path / "out"),
            "source": [{"path": str(tmp_path / "chats.jsonl"), "holds": "conversations"}],
            "step": [step | {"answerer": {"endpoint": "http://localhost:1/v1", "model": "m"}}],
            "cluster": {"workers": 1},
        }
        recipe = build_curation(table, overrides=[f"step#1.answerer.endpoint={server.url}"])
        summary = curate(recipe, tell=lambda label, cost: costs.append(cost))
    assert summary.dropped() == {"1 judge": {"low_quality": 4}}
    (file,) = (tmp_path / "out" / "documents").glob("*.zst")
    with open_zst(file) as lines:
        levels = [json.loads(line)["metadata"]["quality"] for line in lines]
    assert levels == [4, 5, 6, 7]
    (cost,) = costs
    assert cost.requests == 8 and cost.answer_tokens == 8 * 1024
    characters = sum(len(message["content"]) for asked in server.requests for message in asked["messages"])
    assert cost.prompt_characters > 0.7 * characters


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rubrics": []}, "rubrics is empty"),
        ({"rubrics": [{"name": "domain", "least": 3}]}, "least is for levels, and rubric domain has classes"),
        ({"rubrics": [{"name": "domain", "only": ["sport"]}]}, "has no class 'sport'"),
        ({"rubrics": ["fluent"]}, "there is no rubric fluent"),
    ],
)
def test_mistakes_are_told_before_anything_is_asked(keys: dict[str, Any], message: str) -> None:
    with AnsweringServer(say_level) as server, pytest.raises((ValueError, RecipeError), match=message):
        open_step(server, **keys)
