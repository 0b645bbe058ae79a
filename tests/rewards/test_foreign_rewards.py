"""Reward functions in the shapes of verl, TRL, OpenRLHF and AReaL, unchanged."""

from __future__ import annotations

import asyncio
import math
import pickle
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foresail.recipe.tables.reward import Reward
from foresail.records import Message, Problem, Sample, Verdict, single_turn
from foresail.rewards.build import open_grading
from foresail.rewards.foreign_rewards import ForeignReward, add_ids
from foresail.rewards.grading import grade_guarded

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write("def f(completions): …") -> "…/rewards.py:f", for the first function in the text."""

    def write(text: str) -> str:
        text = textwrap.dedent(text)
        path = tmp_path / f"rewards{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        return f"{path}:{text.partition('def ')[2].partition('(')[0]}"

    return write


def make_problem(prompt: str | tuple[Message, ...] = "What is 3+4?", **extra: Any) -> Problem:
    messages = (Message(role="user", content=prompt),) if isinstance(prompt, str) else prompt
    return Problem(id="p", prompt=messages, answer="7", source="sums", extra=extra)


def grade(name: str, response: str = "It is 7", problem: Problem | None = None, **options: Any) -> Verdict:
    pairs = [(problem or make_problem(), single_turn(response))]
    (verdict,) = grade_guarded(ForeignReward(name=name, **options), "whole", pairs).verdicts
    return verdict


# What each shape is given.


def test_verl_gets_its_four_arguments(write: Write) -> None:
    name = write("""
        def compute_score(data_source, solution_str, ground_truth, extra_info=None):
            assert (data_source, solution_str, ground_truth) == ("sums", "It is 7", "7")
            assert extra_info == {"index": 3, "split": "train"}
            return 0.25
    """)
    verdict = grade(name, problem=make_problem(extra_info={"index": 3, "split": "train"}, level=2))
    assert verdict == Verdict(status="wrong", score=0.25, detail=verdict.detail) and "0.25" in verdict.detail


def test_verl_gets_the_ground_truth_as_it_stands_in_its_file(write: Write) -> None:
    name = write("""
        def score(solution_str, ground_truth, extra_info=None, **kwargs):
            assert kwargs == {"data_source": "sums"}, kwargs
            return float(solution_str in ground_truth["target"])
    """)
    problem = make_problem(
        reward_model={"style": "rule", "ground_truth": {"target": ["seven", "7"]}}, level=2
    )
    assert grade(name, "seven", problem).status == "correct"
    assert grade(name, "8", problem).status == "wrong"


def test_verl_without_extra_info_gets_the_columns(write: Write) -> None:
    name = write("""
        def compute_score(data_source, solution_str, ground_truth, extra_info):
            return extra_info["level"]
    """)
    assert grade(name, problem=make_problem(level=5)).score == 5.0


def test_trl_gets_text_for_text_and_its_columns_as_lists(write: Write) -> None:
    name = write("""
        def reward(prompts, completions, completion_ids, level, **kwargs):
            assert prompts == ["What is 3+4?"] and completions == ["It is 7"] and level == [2]
            assert completion_ids == [[5, 6]] and kwargs["tag"] == ["x"]
            return [0.5 for _ in completions]
    """)
    sample = Sample(
        ids=[1, 2, 5, 6],
        loss_mask=[0, 0, 1, 1],
        logprobs=[0.0] * 4,
        versions=[0] * 4,
        turns=[0] * 4,
        finish="stop",
    )
    problem = add_ids(make_problem(level=2, tag="x"), sample)
    assert grade(name, problem=problem).score == 0.5


@pytest.mark.parametrize("marked", [True, False])
def test_trl_gets_messages_for_messages(write: Write, marked: bool) -> None:
    name = write("""
        def accuracy_reward(completions: list[list[dict[str, str]]], solution: list[str], **kwargs):
            contents = [completion[0]["content"] for completion in completions]
            assert kwargs["prompts"][0][-1] == {"role": "user", "content": "What is 3+4?"}
            return [float(text.endswith(gold)) for text, gold in zip(contents, solution)]
    """)
    user, system = Message(role="user", content="What is 3+4?"), Message(role="system", content="Be brief.")
    given = make_problem((system, user), solution="7")
    if marked:  # the column as it was, where the loader keeps it
        raw = [{"role": "user", "content": "What is 3+4?"}]
        given = replace(given, prompt=(user,), extra={"solution": "7", "prompt": raw})
    assert grade(name, problem=given).status == "correct"


def test_trl_without_kwargs_gets_only_what_it_names(write: Write) -> None:
    name = write("""
        def reward_len(completions, log_metric=None, trainer_state=None):
            log_metric("length", 3.0)
            assert trainer_state is None
            return [1.0]
    """)
    assert grade(name, problem=make_problem(answer="7", level=2)).status == "correct"


def test_openrlhf_gets_queries_that_begin_with_their_prompts(write: Write) -> None:
    name = write("""
        def reward_func(queries, prompts, labels, **kwargs):
            assert queries[0][len(prompts[0]):] == "It is 7" and labels == ["7"] and kwargs == {}
            return {"rewards": [2.5], "scores": [1.0], "extra_logs": {"length": [3.0]}}
    """)
    verdict = grade(name, problem=make_problem(level=2))
    assert verdict.status == "correct" and verdict.score == 2.5 and "length" in verdict.detail


def test_areal_gets_one_response_and_the_columns(write: Write) -> None:
    name = write("""
        def gsm8k_reward_fn(prompt, completions, prompt_ids, completion_ids, answer, **kwargs):
            assert (prompt, completions, answer) == ("What is 3+4?", "It is 7", "…#### 7")
            assert prompt_ids is None and completion_ids is None and kwargs["level"] == 2
            return 1
    """)
    assert grade(name, problem=make_problem(answer="…#### 7", level=2)).status == "correct"


@pytest.mark.parametrize("shape", ["completions, **kwargs", "prompt, completions, **data", "solution_str"])
def test_functions_may_be_async(write: Write, shape: str) -> None:
    name = write(f"""
        import asyncio
        async def later({shape}):
            await asyncio.sleep(0.001)
            return 1.0 if isinstance(locals().get("completions"), str) else [1.0]
    """)
    assert grade(name).status == "correct"

    async def inside_a_loop() -> Verdict:
        return grade(name)

    assert asyncio.run(inside_a_loop()).status == "correct"


def test_a_problem_without_columns_still_has_its_answer(write: Write) -> None:
    name = write("def f(completions, answer): return [float(completions[0].endswith(answer[0]))]")
    assert grade(name).status == "correct"


def test_a_column_that_is_not_there_is_named(write: Write) -> None:
    name = write("def f(completions, solution, **kwargs): return [1.0]")
    verdict = grade(name, problem=make_problem(answer="7", level=2))
    assert verdict.status == "crashed" and "it wants solution" in verdict.detail
    assert "answer, level" in verdict.detail


# What comes back.


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        ("1", 1.0),
        ("True", 1.0),
        ("-3.5", -3.5),
        ("[0.5]", 0.5),
        ("(0.5,)", 0.5),
        ("{'score': 0.5, 'acc': False}", 0.5),
        ("{'score': [0.5]}", 0.5),
        ("__import__('numpy').float32(0.5)", 0.5),
        ("__import__('numpy').array([0.5])", 0.5),
        ("__import__('numpy').array([[0.5]])", 0.5),
        ("{'score': __import__('numpy').bool_(True)}", 1.0),
    ],
)
def test_the_score_is_the_number_as_it_is(write: Write, returned: str, score: float) -> None:
    assert grade(write(f"def f(solution_str): return {returned}")).score == score


def test_tensors_are_numbers_too(write: Write) -> None:
    name = write("""
        import torch
        def f(queries, prompts, labels): return {"rewards": torch.tensor([0.5]), "scores": torch.tensor([1.0])}
    """)
    assert grade(name) == Verdict(status="correct", score=0.5, detail=grade(name).detail)


@pytest.mark.parametrize(
    "returned",
    [
        "float('nan')",
        "float('inf')",
        "-float('inf')",
        "'1.0'",
        "[]",
        "[1.0, 2.0]",
        "{}",
        "{'reward': 1.0}",
        "{'score': 'good'}",
        "object()",
        "1j",
        "10 ** 400",
        "[float('nan')]",
    ],
)
def test_what_is_no_finite_number_is_a_crash(write: Write, returned: str) -> None:
    verdict = grade(write(f"def f(solution_str): return {returned}"))
    assert verdict.status == "crashed" and verdict.score == 0.0 and verdict.detail


@pytest.mark.parametrize("returned", ["None", "[None]", "{'score': None}"])
def test_none_means_that_the_function_does_not_apply(write: Write, returned: str) -> None:
    verdict = grade(write(f"def f(solution_str): return {returned}"))
    assert verdict.status == "ungradable" and "does not apply" in verdict.detail


def test_an_error_is_a_crash_with_its_place(write: Write) -> None:
    verdict = grade(write("def f(solution_str): return {}['x']"))
    assert verdict.status == "crashed"
    assert verdict.detail.startswith("KeyError: 'x' (rewards") and verdict.detail.endswith(".py:1)")


def test_right_begins_at_the_threshold(write: Write) -> None:
    name = write("def f(solution_str): return float(solution_str)")
    assert [grade(name, text).status for text in ("0.99", "1", "-1", "3")] == [
        "wrong",
        "correct",
        "wrong",
        "scored",  # three of something is neither right nor wrong
    ]
    assert [grade(name, text, threshold=2.0).status for text in ("1", "3")] == ["wrong", "correct"]
    assert grade(name, "0.5", threshold=0.5).status == "correct"
    assert grade(name, str(0.7 + 0.2 + 0.1)).status == "correct"  # 0.9999999999999999


def test_a_function_may_say_what_is_right_apart_from_the_reward(write: Write) -> None:
    name = write(
        "def f(solution_str): return {'score': 1.0, 'acc': solution_str == '7', 'pred': solution_str}"
    )
    assert grade(name, "7").status == "correct"
    verdict = grade(name, "8")
    assert (verdict.status, verdict.score) == ("wrong", 1.0) and "'pred': '8'" in verdict.detail


# Finding functions.


def test_an_unknown_shape_lists_the_known_ones(write: Write) -> None:
    name = write("def f(response, weight): return 1.0")
    with pytest.raises(ValueError, match=r"f\(response, weight\) has none of the known shapes") as error:
        ForeignReward(name=name).load()
    for words in ("solution_str", "completions", "queries", "prompt_ids", "verl", "trl", "openrlhf", "areal"):
        assert words in str(error.value)


def test_a_missing_file_or_function_says_so(write: Write, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ForeignReward(name=f"{tmp_path}/nowhere.py:f").load()
    name = write("def f(solution_str): return 1.0")
    with pytest.raises(ValueError, match="there is no function g"):
        ForeignReward(name=name.replace(":f", ":g")).load()
    with pytest.raises(ModuleNotFoundError):
        ForeignReward(name="no_such_module_here:f").load()


def test_a_file_is_loaded_once_and_sees_those_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("GOLD = '7'")
    (tmp_path / "counted.py").write_text(
        "import beside_it\ncalls = []\ndef f(solution_str):\n    calls.append(1)\n    return len(calls)"
    )
    name = f"{tmp_path}/counted.py:f"
    assert [grade(name).score for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_file_named_like_a_library_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "math.py").write_text("import math\ndef f(solution_str): return math.sqrt(4)")
    assert grade(f"{tmp_path}/math.py:f").score == 2.0
    import math as still

    assert still is math


def test_modules_and_decorated_functions_and_objects_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "peers_kit").mkdir()
    (tmp_path / "peers_kit" / "scores.py").write_text(
        textwrap.dedent("""
            import functools

            def doubled(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return 2 * function(*args, **kwargs)
                return wrapper

            @doubled
            def f(data_source, solution_str, ground_truth, extra_info=None):
                return 0.25

            class Scorer:
                def __call__(self, completions, **kwargs):
                    return [0.75]

            scorer = Scorer()
        """)
    )
    monkeypatch.chdir(tmp_path)
    assert grade("peers_kit.scores:f").score == 0.5
    assert grade("peers_kit.scores:scorer").score == 0.75


# In other processes.


def test_the_pool_stops_a_function_that_hangs(write: Write) -> None:
    name = write("""
        import time
        def f(solution_str):
            if solution_str == "hang":
                time.sleep(600)
            return 1.0
    """)
    assert pickle.loads(pickle.dumps(ForeignReward(name=name))) == ForeignReward(name=name)
    with open_grading(Reward(grader=name, workers=1, time_limit=1.0)) as grading:
        statuses = [
            grading.submit(make_problem(), single_turn(text)).result(300).status
            for text in ("a", "hang", "b")
        ]
    assert statuses == ["correct", "timeout", "correct"]


def test_a_function_that_cannot_be_loaded_is_an_error_before_any_response(write: Write) -> None:
    name = write("""
        import no_such_library
        def f(solution_str): return 1.0
    """)
    with pytest.raises(ValueError, match="cannot be loaded: ModuleNotFoundError: No module named 'no_"):
        open_grading(Reward(grader=name))
