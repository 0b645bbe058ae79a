"""Steps that ask a model: what was answered once is not asked again, whatever stops the run."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from answering_server import AnsweringServer
from hypothesis import given, settings
from hypothesis import strategies as st
from random_seed import random_seed
from shouting_step import shout_step
from small_recipe import small_recipe, step

from foresail.chat.endpoint import Refused
from foresail.curate.asking.cache import ANSWERS, AnswerCache
from foresail.curate.asking.cost import Cost, describe_cost
from foresail.curate.curation import curate
from foresail.curate.recipe import CurationRecipe
from foresail.curate.run.why import explain
from foresail.data.zst import open_zst


def recipe_at(folder: Path, url: str, out: str = "out", workers: int = 1) -> CurationRecipe:
    """Drops short texts, then lets a model shout the others."""
    recipe = small_recipe(folder, step(folder, "short"), out=str(folder / out), cluster={"workers": workers})
    return replace(recipe, steps=(*recipe.steps, shout_step(2, url)))


def shouted(out: Path) -> dict[str, str]:
    texts = {}
    for file in sorted((out / "documents").glob("*.jsonl*")):
        with open_zst(file) as lines:
            texts |= {row["id"]: row["text"] for row in map(json.loads, lines)}
    return texts


def noted(out: Path) -> dict[str, dict[str, str]]:
    """The whole lines of the caches, by file: answers by key, of two the first."""
    by_file: dict[str, dict[str, str]] = {}
    for file in sorted(out.glob(f"work/*/*{ANSWERS}")):
        rows = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
        by_file[file.name] = {row["key"]: row["answer"] for row in reversed(rows)}
    return by_file


def test_a_step_that_asks_begins_a_phase_and_its_cost_is_told_before(tmp_path: Path) -> None:
    costs: list[tuple[str, Cost, int]] = []
    with AnsweringServer(lambda question, count: question.upper()) as server:
        recipe = recipe_at(tmp_path, server.url, workers=1)
        summary = curate(recipe, tell=lambda label, cost: costs.append((label, cost, len(server.requests))))
        texts = shouted(tmp_path / "out")
        assert len(texts) == summary.kept == 66 and all(text == text.upper() for text in texts.values())
        assert [(label, cost.requests, asked) for label, cost, asked in costs] == [("2 shout", 66, 0)]
        written = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert written["costs"]["2 shout"]["requests"] == 66
        assert "asks a model: at most 66 requests" in (tmp_path / "out" / "report.html").read_text()
        flow = summary.flow()
        assert [flow[label][0] for label in ("read", "1 steps.py:short", "2 shout")] == [80, 66, 66]
        # equal texts of a file are asked once
        assert server.asked["the text that is there several times"] == 2
        asked = len(server.requests)
        verdicts = explain(recipe, "b1")
        assert "changed from character 0" in verdicts[-2] and len(server.requests) == asked
        for file in tmp_path.glob(f"out/work/*/*{ANSWERS}"):
            file.write_bytes(b"")
        verdicts = explain(recipe, "b1")  # asks nobody, whatever is missing
        assert verdicts[-1].startswith("2 shout: has not asked") and len(server.requests) == asked


def run_as_group(recipe: CurationRecipe) -> None:
    os.setsid()
    curate(recipe)


def test_what_was_answered_stands_though_the_run_is_killed_and_the_server_dies(tmp_path: Path) -> None:
    """It answers otherwise at every request, so whoever asks twice has other bytes."""
    generator = random.Random(random_seed())
    with AnsweringServer(lambda question, count: f"{question} {generator.random()}") as server:
        recipe, out = recipe_at(tmp_path, server.url), tmp_path / "out"
        process = multiprocessing.get_context("fork").Process(target=run_as_group, args=(recipe,))
        process.start()
        answers = generator.randrange(5, 30)
        while process.is_alive() and len(server.requests) < answers:
            time.sleep(0.002)
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        after_kill, killed_at = noted(out), len(server.requests)
        assert killed_at - 4 <= sum(map(len, after_kill.values())) <= killed_at

        server.dead_from = killed_at + 15
        with pytest.raises(ValueError, match=r"answers with 503.*start it, then run the same command again"):
            curate(recipe)
        after_death = noted(out)
        assert all(rows.items() <= after_death[file].items() for file, rows in after_kill.items())
        assert sum(map(len, after_death.values())) == sum(map(len, after_kill.values())) + 15

        server.dead_from = None
        with AnsweringServer(server.answer) as elsewhere:
            moved = replace(recipe, steps=(recipe.steps[0], shout_step(2, elsewhere.url, parallel=2)))
            assert curate(moved).kept == 66
        in_the_end = noted(out)
        assert all(rows.items() <= in_the_end[file].items() for file, rows in after_death.items())
        assert {*shouted(out).values()} == {
            answer for rows in in_the_end.values() for answer in rows.values()
        }


NAMES = st.text(alphabet="abcd", min_size=1, max_size=3)
ANSWER = st.one_of(st.text(max_size=8), st.text(max_size=4).map(Refused))


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(st.tuples(st.lists(st.tuples(NAMES, ANSWER), max_size=6), st.integers(0, 60)), max_size=5)
)
def test_a_torn_cache_holds_the_answers_before_the_tear(
    rounds: list[tuple[list[tuple[str, str | Refused]], int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"p{ANSWERS}"
        cache, known = AnswerCache(Path(folder)), list[tuple[str, str | Refused]]()
        for pairs, torn in rounds:
            cache.open_piece("p")
            for key, answer in pairs:
                cache.note(key, answer)
                known += [] if key in dict(known) else [(key, answer)]
                assert cache.find(key) == dict(known)[key]
            cache.close()
            content = file.read_bytes()[: max(0, file.stat().st_size - torn)]
            file.write_bytes(content)
            known = known[: content.count(b"\n")]
        cache.open_piece("p")
        assert {key: cache.find(key) for key, _ in known} == dict(known)
        assert cache.find("never noted") is None
        cache.close()


def test_a_cost_is_told_in_round_figures() -> None:
    cost = Cost(requests=1200, prompt_characters=4_100_000, answer_tokens=999_999)
    assert describe_cost(cost) == (
        "at most 1,200 requests, about 4.1 M characters of prompts (1.0 M tokens of English), "
        "at most 999,999 tokens of answers"
    )
