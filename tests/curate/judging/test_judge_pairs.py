"""`foresail data judge --pairwise`: agreement, consistency and bias of judges whose truth is known."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from answering_server import AnsweringServer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from foresail.cli import app
from foresail.rewards.judging.agreement import agreement, share
from foresail.rewards.judging.judge import Comparison, Unjudged, settle


def write_pairs(folder: Path, count: int = 30) -> Path:
    """The better answer has the greater number."""
    generator = random.Random(0)
    rows = []
    for number in range(count):
        low, high = sorted(generator.sample(range(100), 2))
        rows.append(
            {"prompt": f"question {number // 2}", "chosen": f"value {high}", "rejected": f"value {low}"}
        )
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "pairs.jsonl"


def values_in(question: str) -> list[int]:
    return [int(value) for value in re.findall(r"value (\d+)", question)]


def compare(question: str, count: int) -> str:
    """Right, but for small differences, where it always says A; now and then it says nothing."""
    a, b = values_in(question)
    if (a + b) % 13 == 0:
        return "cannot say"
    (name,) = re.findall(r'"(better_[0-9a-f]{6})"', question)
    return json.dumps({name: "A" if a > b or b - a < 20 else "B"})


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["data", "judge", *arguments, "--model", "m", "--patience", "0"])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_agreement_and_bias_of_a_judge_that_prefers_a_where_it_is_close(tmp_path: Path) -> None:
    pairs, out = write_pairs(tmp_path), tmp_path / "out"
    with AnsweringServer(compare) as server:
        arguments = [str(pairs), "--out", str(out), "--pairwise", "--endpoint", server.url]
        said = run(*arguments, "--most", "30")
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        asked = len(server.requests)
        assert run(*arguments, "--most", "30") == said and len(server.requests) == asked
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
        answers = (out / "judge.answers.jsonl").read_bytes()
        (out / "judge.answers.jsonl").write_bytes(answers[: len(answers) // 3])
        assert run(*arguments, "--most", "30") == said and asked < len(server.requests) < 2 * asked
    truth = [
        (high - low >= 20, (high + low) % 13 == 0)
        for high, low in (values_in(line) for line in pairs.read_text().splitlines())
    ]
    judged = [clear for clear, silent in truth if not silent]
    figures = json.loads((out / "figures.json").read_text())
    assert figures["pairs"] == 30 and figures["unjudged"] == {"no_json": 30 - len(judged)}
    assert figures["consistency"]["value"] == pytest.approx(sum(judged) / len(judged))
    assert figures["agreement"]["value"] == pytest.approx((1 + sum(judged) / len(judged)) / 2)
    assert figures["decided"]["value"] == 1.0 and figures["decided"]["count"] == sum(judged)
    assert figures["position_bias"] == pytest.approx(1 - sum(judged) / len(judged))
    assert "swap consistency" in said and "position bias" in said


def test_answers_rated_alone_are_compared_by_their_ratings(tmp_path: Path) -> None:
    def rate(question: str, count: int) -> str:
        (name,) = re.findall(r'"(quality_[0-9a-f]{6})"', question)
        return json.dumps({name: values_in(question)[-1] // 10})

    pairs, out = write_pairs(tmp_path, 12), tmp_path / "out"
    with AnsweringServer(rate) as server:
        run(str(pairs), "--out", str(out), "--pairwise", "--by-levels", "--endpoint", server.url)
    outcomes = [json.loads(line)["outcome"] for line in (out / "pairs.jsonl").open()]
    expected = ["first" if high // 10 > low // 10 else "tie" for high, low in map(values_in, pairs.open())]
    assert outcomes == expected
    assert json.loads((out / "figures.json").read_text())["consistency"] is None


SAID = st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])


@settings(max_examples=60, deadline=None)
@given(said=st.lists(st.tuples(SAID, SAID), min_size=1, max_size=20), copies=st.integers(2, 4))
def test_a_judge_that_swaps_all_answers_has_the_opposite_figures(
    said: list[tuple[float, float]], copies: int
) -> None:
    names = [str(number) for number in range(len(said))]
    verdicts = [settle(*both) for both in said]
    swapped = [settle(1 - a, 1 - b) for a, b in said]
    figures, opposite = agreement(verdicts, names), agreement(swapped, names)
    assert figures.agreement and opposite.agreement and figures.consistency == opposite.consistency
    assert figures.agreement.value + opposite.agreement.value == pytest.approx(1)
    assert figures.position_bias == pytest.approx(-(opposite.position_bias or 0.0))
    # the same verdicts several times under one prompt narrow no interval
    again = agreement(verdicts * copies, names * copies)
    assert again.agreement and again.agreement.low <= figures.agreement.low + 1e-9
    assert again.agreement.high >= figures.agreement.high - 1e-9


def test_without_a_verdict_nothing_is_counted_as_one() -> None:
    figures = agreement([Unjudged("refused"), Unjudged("no_json"), Unjudged("refused")], ["a", "b", "c"])
    assert figures.unjudged == {"no_json": 1, "refused": 2} and figures.agreement is None
    mixed = agreement(
        [Unjudged("refused"), Comparison(outcome="first", score=1.0, said=(1.0, 1.0))], ["a", "b"]
    )
    assert mixed.agreement and mixed.agreement.value == 1.0 and mixed.agreement.count == 1


def test_intervals_of_shares_are_wilsons_where_nothing_is_clustered() -> None:
    from foresail.evaluation.interval import wilson_interval

    one = share([1.0] * 7 + [0.0] * 3, [str(number) for number in range(10)])
    assert one and (one.low, one.high) == pytest.approx(wilson_interval(7, 10))
