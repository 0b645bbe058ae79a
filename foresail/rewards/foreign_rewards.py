"""Reward functions written for verl, TRL, OpenRLHF or AReaL, with those libraries' calls, and plain functions.

    [reward]
    grader = "my_rewards.py:score"

The shape is recognised by the parameters' names (`foresail.recipe.reward_function`). TRL's and OpenRLHF's functions
get all responses to a problem in one call, the others one response at a time. Of several turns a function gets only
the last response.

What the function returns is the reward, as it is; it counts as `correct` from `threshold` on (see `status_of`).
None means that the function does not apply (`ungradable`). An error, or anything that is not a finite number, is
`crashed`.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from foresail.recipe.reward_function import (
    ANSWER_NAMES,
    RESPONSE_NAMES,
    Shape,
    explain_shapes,
    first_of,
    recognise,
)
from foresail.records import Message, Problem, Sample, Trajectory, Verdict, single_turn
from foresail.rewards.grading import GraderTraits, Pair, RequiredColumns
from foresail.rewards.returned_rewards import Logged, split_batch, to_verdict
from foresail.rewards.trajectory import turn_spans
from foresail.user_code import load_user_code, split_name

BATCHED: frozenset[Shape] = frozenset({"trl", "openrlhf"})
EXAMPLE = Problem(id="example", prompt=(Message(role="user", content="?"),), answer="!")


@dataclass(frozen=True, kw_only=True)
class ForeignReward:
    """A grader made of a user's reward function, named or passed as an object.

    By name it is light to pickle: the function is loaded where it is called.
    """

    name: str
    threshold: float | None = None
    function: Callable[..., Any] | None = None

    def load(self) -> RewardCall:
        return load_call(self.name) if self.function is None else self._call

    @cached_property
    def _call(self) -> RewardCall:
        assert self.function is not None
        return make_call(self.name, self.function)

    @property
    def batched(self) -> bool:
        return self.load().shape in BATCHED

    def traits(self) -> GraderTraits:
        required, batched = self.load().required_columns, self.batched
        return GraderTraits(
            early=not batched,
            group=batched,
            main_in_group=batched,
            required_columns=(required,) if required.columns else (),
        )

    def __call__(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        return self.grade_group([(problem, trajectory)])[0]

    def grade_group(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """One call for all where the function takes a batch, else one call each."""
        call = self.load()
        batches = [pairs] if call.shape in BATCHED else [[pair] for pair in pairs]
        return [verdict for batch in batches for verdict in self._judge(call, batch)]

    def _judge(self, call: RewardCall, pairs: Sequence[Pair]) -> list[Verdict]:
        logged = Logged(len(pairs))
        values = split_batch(call(pairs, logged), len(pairs))
        return [
            logged.add_to(to_verdict(value, name=self.name, threshold=self.threshold), number)
            for number, value in enumerate(values)
        ]


@dataclass(frozen=True, kw_only=True)
class RewardCall:
    """A function with what its signature says: its shape, its parameters, those it must get, and `**kwargs`."""

    function: Callable[..., Any]
    shape: Shape
    names: tuple[str, ...]
    required: frozenset[str]
    takes_any: bool

    def __call__(self, pairs: Sequence[Pair], logged: Logged) -> Any:
        value = self.function(**self.choose(pairs, logged))
        return await_value(value) if inspect.isawaitable(value) else value

    def choose(self, pairs: Sequence[Pair], logged: Logged) -> dict[str, Any]:
        """The shape's own arguments and the data's columns, as far as the function takes them."""
        own, columns = self.arguments(pairs, logged), column_lists([problem for problem, _ in pairs])
        batched = self.shape in BATCHED
        everything = {name: values if batched else values[0] for name, values in columns.items()} | own
        if missing := self.required - everything.keys():
            raise ValueError(
                f"it wants {', '.join(sorted(missing))}, and the data has the columns "
                f"{', '.join(sorted(columns)) or '(none)'}"
            )
        # verl and OpenRLHF hand no columns to **kwargs; TRL and AReaL hand over all of them.
        passed_on = own if self.shape in ("verl", "openrlhf") else everything
        accepted = {*self.names} | (passed_on.keys() if self.takes_any else set())
        return {name: value for name, value in everything.items() if name in accepted}

    def arguments(self, pairs: Sequence[Pair], logged: Logged) -> dict[str, Any]:
        if self.shape == "plain":
            return plain_arguments(self.names, *pairs[0])
        if self.shape in BATCHED:
            return (trl_arguments if self.shape == "trl" else openrlhf_arguments)(pairs, logged)
        return (verl_arguments if self.shape == "verl" else areal_arguments)(*pairs[0])

    @property
    def required_columns(self) -> RequiredColumns:
        """The columns it requires, beyond what every problem has."""
        arguments = self.arguments([(EXAMPLE, single_turn(""))], Logged(1)).keys()
        columns = self.required - arguments - {"answer", "prompt_ids", "completion_ids"}
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        place = f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code is not None else ""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return RequiredColumns(function=name, place=place, columns=tuple(sorted(columns)))


# The arguments of each shape. Token ids are None unless the response was sampled.


def verl_arguments(problem: Problem, trajectory: Trajectory) -> dict[str, Any]:
    return {
        "data_source": problem.source,
        "solution_str": trajectory.response,
        "ground_truth": ground_truth(problem),
        "extra_info": problem.extra.get("extra_info", problem.extra),
    }


def areal_arguments(problem: Problem, trajectory: Trajectory) -> dict[str, Any]:
    ids = {name: problem.extra.get(name) for name in ("prompt_ids", "completion_ids")}
    return {"prompt": prompt_text(problem), "completions": trajectory.response, **ids}


def plain_arguments(names: Sequence[str], problem: Problem, trajectory: Trajectory) -> dict[str, Any]:
    """`score(response, answer)` under any of the usual names; `prompt` too, where it is asked for."""
    response, answer = first_of(names, RESPONSE_NAMES), first_of(names, ANSWER_NAMES)
    assert response is not None and answer is not None, "the shape was recognised by them"
    return {
        "prompt": prompt_text(problem),
        response: trajectory.response,
        answer: ground_truth(problem),
    }


def openrlhf_arguments(pairs: Sequence[Pair], logged: Logged) -> dict[str, Any]:
    prompts = each_prompt(pairs, prompt_text)
    return {
        "queries": [
            prompt + trajectory.response for prompt, (_, trajectory) in zip(prompts, pairs, strict=True)
        ],
        "prompts": prompts,
        "labels": [problem.answer for problem, _ in pairs],
    }


def trl_arguments(pairs: Sequence[Pair], logged: Logged) -> dict[str, Any]:
    return {
        "prompts": each_prompt(pairs, messages_or_text),
        "completions": [
            [{"role": "assistant", "content": trajectory.response}]
            if is_conversational(problem)
            else trajectory.response
            for problem, trajectory in pairs
        ],
        "completion_ids": [problem.extra.get("completion_ids") for problem, _ in pairs],
        "trainer_state": None,
        "log_extra": logged.log_extra,
        "log_metric": logged.log_metric,
    }


def column_lists(problems: Sequence[Problem]) -> dict[str, list[Any]]:
    """The data's columns, a list each; a generated problem has no column for its answer."""
    answers = {"answer": [problem.answer for problem in problems]}
    return answers | {name: [problem.extra.get(name) for problem in problems] for name in problems[0].extra}


def each_prompt(pairs: Sequence[Pair], write: Callable[[Problem], Any]) -> list[Any]:
    """Every pair's prompt; equal ones are written once."""
    written = {id(problem.prompt): write(problem) for problem in {id(p.prompt): p for p, _ in pairs}.values()}
    return [written[id(problem.prompt)] for problem, _ in pairs]


def prompt_text(problem: Problem) -> str:
    return "\n\n".join(message.content for message in problem.prompt)


def messages_or_text(problem: Problem) -> Any:
    if not is_conversational(problem):
        return prompt_text(problem)
    return [{"role": message.role, "content": message.content} for message in problem.prompt]


def is_conversational(problem: Problem) -> bool:
    """TRL's functions get messages where the data's prompts are messages, and text where they are text."""
    return isinstance(problem.extra.get("prompt"), list) or len(problem.prompt) > 1


def ground_truth(problem: Problem) -> Any:
    """The value in verl's file, which may be any object; else the problem's answer."""
    reward_model = problem.extra.get("reward_model")
    if isinstance(reward_model, Mapping) and "ground_truth" in reward_model:
        return reward_model["ground_truth"]
    return problem.answer


def add_ids(problem: Problem, sample: Sample) -> Problem:
    """The problem with a sample's token ids among its columns: the last response's, and all before them."""
    _, start, _ = turn_spans(sample)[-1]
    ids = {"prompt_ids": sample.ids[:start], "completion_ids": sample.ids[start:]}
    return replace(problem, extra={**problem.extra, **ids})


# Loading.


@cache
def load_call(name: str) -> RewardCall:
    """load_call("my_rewards.py:score"), cached in each process; a ValueError names what is wrong."""
    place, function_name = split_name(name)
    function = load_user_code(name)
    if not callable(function):
        raise ValueError(f"there is no function {function_name} in {place}")
    return make_call(function_name, function)


def make_call(name: str, function: Callable[..., Any]) -> RewardCall:
    """Its shape, read from its signature: a lambda, a bound method and an object with `__call__` have one too."""
    parameters = inspect.signature(function).parameters.values()
    by_name = [
        entry for entry in parameters if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)
    ]
    names = tuple(entry.name for entry in by_name)
    shape = recognise(names)
    if shape is None:
        raise ValueError(explain_shapes(split_name(name)[1], names))
    return RewardCall(
        function=function,
        shape=shape,
        names=names,
        required=frozenset(entry.name for entry in by_name if entry.default is entry.empty),
        takes_any=any(entry.kind is entry.VAR_KEYWORD for entry in parameters),
    )


# Functions that are async.


def await_value(awaitable: Any) -> Any:
    """Run a coroutine on this process's own loop, whatever loop the caller may be in."""

    async def wait() -> Any:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(wait(), background_loop()).result()


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """One loop for all calls: what a function opens on it, such as an HTTP session, stays open."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="async rewards", daemon=True).start()
    return loop
