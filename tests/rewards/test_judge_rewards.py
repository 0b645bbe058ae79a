"""A judge as a grader: levels, a reference answer, siblings, terms; what is no verdict is no score."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from answering_server import AnsweringServer
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.check.judging import look_at_judge
from foresail.recipe.tables.reward import Reward
from foresail.records import Message, Problem, RunStopped, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.grading import Grading, group_verdicts
from foresail.rewards.group_rewards import pay
from foresail.rewards.judging.siblings import ring_pairs, score_group
from foresail.rewards.queued_grading import GradingJob
from foresail.rewards.side_grading import SideGrading
from foresail.rollout.answering.answerer import open_answerer

PROBLEM = Problem(id="p1", prompt=(Message(role="user", content="What is 7 + 5?"),), answer="value 12")
SECONDS = 60.0


def say(question: str, count: int) -> str | int:
    """By the numbers of the answers: a number is a level of 0 to 10, of two the greater is better."""
    judged = re.findall(r"<<(?:answer(?: [AB])?) (\w+)>>\n(.*?)\n<<", question, re.DOTALL)
    values = [int(re.findall(r"value (\d+)|$", text)[0] or -1) for _, text in judged]
    (name,) = re.findall(r'"((?:better|quality|correctness)_[0-9a-f]{6})"', question)
    if 99 in values:
        return "I would rather not say."
    if 98 in values:
        return 400
    if name.startswith("better"):
        return json.dumps({name: "A" if values[0] > values[1] else "B"})
    return json.dumps({name: max(0, min(values[0], 10))})


def reward(
    server: AnsweringServer, *, terms: Sequence[dict[str, Any]] = (), grader: str = "judge", **keys: Any
) -> Reward:
    answerer = {"endpoint": server.url, "model": "m", "patience": 0.0, **keys.pop("answerer", {})}
    return Reward.model_validate(
        {"grader": grader, "terms": list(terms), "judge": {"answerer": answerer, **keys}}, strict=False
    )


def grade_all(grading: Grading, texts: Sequence[str], problem: Problem = PROBLEM) -> list[Verdict]:
    """As a run does: early, then with the group."""
    pairs = [(problem, single_turn(text)) for text in texts]
    if not grading.traits.group:
        return [grading.submit(*pair).result(SECONDS) for pair in pairs]
    from foresail.rewards.grading import NOTHING_YET

    early = [grading.submit_early(*pair) if grading.traits.early else NOTHING_YET for pair in pairs]
    return [future.result(SECONDS) for future in group_verdicts(grading, pairs, early)]


def test_levels_become_scores_and_no_verdict_is_no_score() -> None:
    texts = [
        "value 7",
        "<think>value 1</think> value 10",
        "<think>value 3",
        "value 99",
        "value 98",
        "value 7",
    ]
    with AnsweringServer(say) as server, open_grading(reward(server)) as grading:
        verdicts = grade_all(grading, texts)
        assert [verdict.status for verdict in verdicts] == [
            "scored", "scored", "unparsable", "scored", "scored", "scored",
        ]  # fmt: skip
        assert [verdict.score for verdict in verdicts] == [0.7, 1.0, 0.0, 0.0, 0.0, 0.7]
        assert "quality is 7 of 0 to 10" in verdicts[0].detail
        assert [verdict.metrics["judge/shown_shorter"] for verdict in verdicts[3:]] == [1.0, 1.0, 0.0]
        assert "could be shown 25% of it" in verdicts[3].detail  # a response cannot have itself dropped
        asked = len(server.requests)
        grade_all(grading, texts[:2])
        assert len(server.requests) == asked  # nothing is asked twice
        server.answer = lambda question, count: "hm"  # the judge is broken, and that is no score
        (broken,) = grade_all(grading, ["value 1"])
        server.answer = lambda question, count: 400
        (refused,) = grade_all(grading, ["value 2"])
        assert [broken.status, refused.status] == ["crashed", "ungradable"] and "no_json" in broken.detail
        assert pay(broken, grading.settings) is pay(refused, grading.settings) is None  # type: ignore[attr-defined]


def test_a_threshold_says_what_is_right() -> None:
    with AnsweringServer(say) as server, open_grading(reward(server, right_from=0.5)) as grading:
        statuses = [verdict.status for verdict in grade_all(grading, ["value 5", "value 4"])]
    assert statuses == ["correct", "wrong"]


def test_a_reference_is_shown_or_compared_with() -> None:
    with AnsweringServer(say) as server:
        with open_grading(reward(server, shows_answer=True, rubric="correctness")) as grading:
            (verdict,) = grade_all(grading, ["value 3"])
            assert verdict.score == 0.3
            assert "<<reference answer" in server.requests[0]["messages"][-1]["content"]
        with open_grading(reward(server, against="reference")) as grading:
            better, worse, same = grade_all(grading, ["value 13", "value 11", "value 12"])
            assert (better.score, worse.score, same.score) == (1.0, 0.0, 0.5)
            assert "otherwise when both are swapped" in same.detail
            assert same.metrics == {"judge/inconsistent": 1.0, "judge/shown_shorter": 0.0}
            unanswered = Problem(id="p2", prompt=PROBLEM.prompt, answer="")
            assert grade_all(grading, ["value 1"], unanswered)[0].status == "ungradable"


@pytest.mark.parametrize("beside", [False, True])
def test_siblings_are_compared_alone_or_beside_a_rule(beside: bool) -> None:
    texts = ["\\boxed{12} value 1", "value 3", "value 2", "<think>endless"]
    problem = Problem(id="p1", prompt=PROBLEM.prompt, answer="12")
    with AnsweringServer(say) as server:
        if beside:
            terms = [{"grader": "judge", "name": "taste", "weight": 0.5}]
            settings_ = reward(server, against="siblings", opponents=4, grader="math", terms=terms)
        else:
            settings_ = reward(server, against="siblings", opponents=4)
        with open_grading(settings_) as grading:
            verdicts = grade_all(grading, texts, problem)
            loud = grade_all(grading, ["value 1", "value 99", "value 2"], problem)
            server.answer = lambda question, count: "hm"
            broken = grade_all(grading, ["value 1", "value 4", "value 5"], problem)
    scores = [verdict.terms.get("taste") if beside else verdict.score for verdict in verdicts]
    assert scores == pytest.approx([1 / 3, 1.0, 2 / 3, 0.0])
    assert [verdict.status for verdict in verdicts[:2]] == (
        ["correct", "unparsable"] if beside else ["scored"] * 2
    )
    # the one that the judge cannot read loses to both; the others are compared as ever
    assert [verdict.terms.get("taste") if beside else verdict.score for verdict in loud] == [0.5, 0.0, 1.0]
    assert {verdict.status for verdict in broken} == {"crashed"}


def test_two_terms_of_a_judge_and_a_rule_are_joined() -> None:
    terms = [{"grader": "math", "name": "right", "weight": 2.0}, {"grader": "judge", "name": "taste"}]
    with AnsweringServer(say) as server, open_grading(reward(server, grader="none", terms=terms)) as grading:
        problem = Problem(id="p", prompt=PROBLEM.prompt, answer="12")
        (verdict,) = grade_all(grading, ["\\boxed{12} value 4"], problem)
        server.answer = lambda question, count: "hm"
        (failed,) = grade_all(grading, ["\\boxed{12} value 5"], problem)
    assert verdict.terms == {"right": 1.0, "taste": 0.4} and verdict.status == "scored"
    assert failed.status == "crashed" and failed.detail.startswith("term taste: the judge gave no verdict")


def test_a_server_that_stays_away_stops_the_run_and_is_waited_for_while_it_may_return() -> None:
    with AnsweringServer(say) as server:
        server.dead_from = 0
        with (
            open_grading(reward(server)) as grading,
            pytest.raises(RunStopped, match=r"judge.*answers with 503"),
        ):
            grading.submit(PROBLEM, single_turn("value 3")).result(SECONDS)
        with open_grading(reward(server, answerer={"patience": 30.0})) as grading:
            waiting = grading.submit(PROBLEM, single_turn("value 3"))
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            server.dead_from = None
            assert waiting.result(SECONDS).score == 0.3
        server.dead_from = 0
        with open_grading(reward(server, answerer={"patience": 600.0})) as grading:
            grading.submit(PROBLEM, single_turn("value 4"))  # closing does not wait ten minutes for it


def test_a_checkpoint_judges_by_probabilities(tiny_checkpoint: Path) -> None:
    judge = {
        "answerer": {"checkpoint": str(tiny_checkpoint), "device": "cpu"},
        "form": {"read": "probability"},
    }
    small = {**judge, "form": {"read": "probability", "seal": False, "max_chars": 100}}
    settings_ = Reward.model_validate({"grader": "judge", "judge": small}, strict=False)
    with pytest.raises(ValueError, match="judges in the native engine"):
        open_grading(settings_)
    with open_grading(settings_, open_answer=open_answerer) as grading:
        (verdict,) = grade_all(grading, ["7"])
    assert verdict.status in ("scored", "ungradable")  # a question may be too long for so small a context


def test_foresail_check_tries_the_judge() -> None:
    with AnsweringServer(say) as server:
        (finding,) = look_at_judge("data", [PROBLEM], reward(server))
        assert finding.kind == "note" and "gives a right answer 1, and 'I do not know.'" in finding.text
        (finding,) = look_at_judge("data", [PROBLEM], reward(server, against="siblings"))
        assert finding.kind == "note"
        server.answer = lambda question, count: "hm"
        (finding,) = look_at_judge("data", [PROBLEM], reward(server))
        assert finding.kind == "refusal" and "no_json" in finding.text
        server.dead_from = 0
        (finding,) = look_at_judge("data", [PROBLEM], reward(server))
        assert finding.kind == "warning" and "answers with 503" in finding.text
        (finding,) = look_at_judge("data", [PROBLEM], reward(server, rubric="fluent"))
        assert finding.kind == "refusal" and "there is no rubric" in finding.text


def test_a_judge_that_is_away_can_be_closed_while_responses_wait() -> None:
    first_graded, second_waits = threading.Event(), threading.Event()

    class Away(SideGrading):
        def open(self) -> None:
            """Nothing to load."""

        def grade(self, jobs: Sequence[GradingJob]) -> None:
            first_graded.set()
            assert second_waits.wait(SECONDS)
            raise RunStopped("the judge is away")

    with AnsweringServer(say) as server:
        grading = Away(reward(server), None, grader="judge")
    grading.check()
    futures = [grading.submit(PROBLEM, single_turn("first"))]
    assert first_graded.wait(SECONDS)
    futures.append(grading.submit(PROBLEM, single_turn("second")))
    second_waits.set()
    for future in futures:
        with pytest.raises(RunStopped, match="the judge is away"):
            future.result(SECONDS)
    grading.close()


@settings(max_examples=100, deadline=None)
@given(count=st.integers(1, 12), opponents=st.integers(1, 14))
def test_everybody_meets_as_many_others(count: int, opponents: int) -> None:
    pairs = ring_pairs(count, opponents)
    met = [sum(place in pair for pair in pairs) for place in range(count)]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert len({*met}) <= 1 and all(number >= min(opponents, count - 1) for number in met)
    # without a verdict from anybody, equal texts: half; without siblings: no score
    scores = score_group(["a"] * count, opponents, {})
    assert all(score == 0.5 for score in scores) if count > 1 else not isinstance(scores[0], float)
