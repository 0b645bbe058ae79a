"""No text makes the verifier raise, from wherever it is called. What it costs is measured in benchmarks/."""

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from hostile_answers import LIMIT, hostile_texts

from foresail.maths.verdict import grade
from foresail.records import Verdict

TEXTS = hostile_texts()
OTHER = "7341"  # no hostile text means this number
SOME = ["deep fractions", "open boxes", "huge: power tower", "many plus-minus", "lone surrogates"]


def outcomes(text: str) -> list[str]:
    """Statuses of the text as a response, in a box, as the gold answer, and against itself."""
    boxed = "\\boxed{" + text + "}"
    pairs = [(text, OTHER), (boxed, OTHER), ("\\boxed{" + OTHER + "}", text), (boxed, text)]
    verdicts = [grade(response, answer) for response, answer in pairs]
    assert all(isinstance(verdict, Verdict) for verdict in verdicts)
    return [verdict.status for verdict in verdicts]


def test_there_are_many_hostile_texts_within_the_limit():
    assert len(TEXTS) >= 60
    assert max(map(len, TEXTS.values())) <= LIMIT


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_gets_a_verdict_and_no_pay(name):
    *against_another, _ = outcomes(TEXTS[name])  # whether a huge text equals itself is the verifier's to say
    assert "correct" not in against_another


def test_hostile_text_gets_the_same_verdicts_off_the_main_thread():
    here = [outcomes(TEXTS[name]) for name in SOME]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(outcomes, [TEXTS[name] for name in SOME])) == here


def test_hostile_text_gets_the_same_verdicts_in_an_event_loop():
    here = [outcomes(TEXTS[name]) for name in SOME]

    async def in_the_loop_and_beside_it() -> None:
        for name, expected in zip(SOME, here, strict=True):
            assert outcomes(TEXTS[name]) == expected
            assert await asyncio.to_thread(outcomes, TEXTS[name]) == expected

    asyncio.run(in_the_loop_and_beside_it())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_hostile_text_gets_the_same_verdicts_in_another_process(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform cannot {method}")
    here = [outcomes(TEXTS[name]) for name in SOME]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as processes:
        assert list(processes.map(outcomes, [TEXTS[name] for name in SOME])) == here
