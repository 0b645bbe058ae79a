"""Reward functions written for verl, TRL, OpenRLHF or AReaL, called as those call them.

    [reward]
    grader = "my_rewards.py:score"

The shape is told by the parameters' names (`foresail.recipe.reward_function`). Batched shapes get a batch of one:
a function that compares the responses of a batch finds nothing to compare. What the function returns is the
reward, as it is; it counts as `correct` from `threshold` on. None means that the function does not apply
(`ungradable`). An error, or anything that is not a finite number, is `crashed`.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import math
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from foresail.recipe.reward_function import Shape, explain_shapes, is_file, recognise, split_name
from foresail.records import Problem, Sample, Verdict

LONGEST_DETAIL = 200  # characters of what a function says besides the score
ROUNDING = 1e-9  # 0.7 + 0.2 + 0.1 is meant to be 1


@dataclass(frozen=True, kw_only=True)
class PeerFunction:
    """A grader made of somebody's reward function. Light to pickle: the function is loaded where it is called."""

    name: str
    threshold: float = 1.0

    def load(self) -> Call:
        return load_call(self.name)

    def __call__(self, problem: Problem, response: str) -> Verdict:
        return self.to_verdict(self.load()(problem, response))

    def to_verdict(self, value: Any) -> Verdict:
        """What the function returned, read; verl's `acc` and OpenRLHF's `scores` say what is right, if given."""
        value = plain(value)
        said = value if isinstance(value, dict) else {"score": value}
        reward = to_number(said, "score", "rewards")
        if reward is None:
            detail = f"{self.name} gave None: it does not apply to this problem"
            return Verdict(status="ungradable", score=0.0, detail=detail)
        rightness = to_number(said, "acc", "scores") if said.keys() & {"acc", "scores"} else None
        right = reward >= self.threshold - ROUNDING if rightness is None else rightness >= 1 - ROUNDING
        rest = {key: said[key] for key in said if key not in ("score", "rewards")}
        detail = f"{self.name} gave {reward:g}" + (f", {rest}"[:LONGEST_DETAIL] if rest else "")
        return Verdict(status="correct" if right else "wrong", score=reward, detail=detail)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function with what its signature tells: its shape, its parameters, those it must get, and `**kwargs`."""

    function: Callable[..., Any]
    shape: Shape
    names: frozenset[str]
    required: frozenset[str]
    takes_any: bool

    def __call__(self, problem: Problem, response: str) -> Any:
        columns = {"answer": problem.answer, **problem.extra}  # a generated problem has no column for it
        value = self.function(**self.choose(arguments(self.shape, problem, response), columns))
        return await_value(value) if inspect.isawaitable(value) else value

    def choose(self, given: dict[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
        """The shape's own arguments and the data's columns, as far as the function takes them."""
        batched = self.shape in ("trl", "openrlhf")
        everything = {name: [value] if batched else value for name, value in columns.items()} | given
        if missing := self.required - everything.keys():
            raise ValueError(
                f"it wants {', '.join(sorted(missing))}, and the data has the columns "
                f"{', '.join(sorted(columns)) or '(none)'}"
            )
        # verl and OpenRLHF hand no columns to **kwargs; TRL and AReaL hand over all of them.
        passed_on = everything if self.shape in ("trl", "areal") else given
        wanted = self.names | (passed_on.keys() if self.takes_any else frozenset())
        return {name: value for name, value in everything.items() if name in wanted}


def arguments(shape: Shape, problem: Problem, response: str) -> dict[str, Any]:
    """What each of the four hands over. Ids are there where the response was sampled, else None."""
    prompt = "\n\n".join(message.content for message in problem.prompt)
    prompt_ids, completion_ids = problem.extra.get("prompt_ids"), problem.extra.get("completion_ids")
    if shape == "verl":
        return {
            "data_source": problem.source,
            "solution_str": response,
            "ground_truth": ground_truth(problem),
            "extra_info": problem.extra.get("extra_info", problem.extra),
        }
    if shape == "openrlhf":
        return {"queries": [prompt + response], "prompts": [prompt], "labels": [problem.answer]}
    if shape == "areal":
        ids = {"prompt_ids": prompt_ids, "completion_ids": completion_ids}
        return {"prompt": prompt, "completions": response, **ids}
    messages = [{"role": message.role, "content": message.content} for message in problem.prompt]
    chat = is_conversational(problem)
    return {
        "prompts": [messages if chat else prompt],
        "completions": [[{"role": "assistant", "content": response}] if chat else response],
        "completion_ids": [completion_ids],
        "trainer_state": None,
        "log_extra": ignore,
        "log_metric": ignore,
    }


def is_conversational(problem: Problem) -> bool:
    """TRL's functions get messages where the data's prompts are messages, and text where they are text."""
    return isinstance(problem.extra.get("prompt"), list) or len(problem.prompt) > 1


def ground_truth(problem: Problem) -> Any:
    """As it stands in verl's file, where it may be any object; else the answer as Foresail reads it."""
    reward_model = problem.extra.get("reward_model")
    if isinstance(reward_model, Mapping) and "ground_truth" in reward_model:
        return reward_model["ground_truth"]
    return problem.answer


def add_ids(problem: Problem, sample: Sample) -> Problem:
    """The problem with a sample's token ids among its columns, where functions look for them."""
    prompt = [token for token, drawn in zip(sample.ids, sample.loss_mask, strict=True) if not drawn]
    response = [token for token, drawn in zip(sample.ids, sample.loss_mask, strict=True) if drawn]
    return replace(problem, extra={**problem.extra, "prompt_ids": prompt, "completion_ids": response})


# Loading.


@cache
def load_call(name: str) -> Call:
    """load_call("my_rewards.py:score"), once a process; a ValueError names what is not as it should be."""
    place, function = split_name(name)
    module = load_file(Path(place)) if is_file(place) else load_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        raise ValueError(f"there is no function {function} in {place}")
    parameters = inspect.signature(found).parameters.values()
    named = [entry for entry in parameters if entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)]
    names = [entry.name for entry in named]
    shape = recognise(names)
    if shape is None:
        raise ValueError(explain_shapes(function, names))
    return Call(
        function=found,
        shape=shape,
        names=frozenset(names),
        required=frozenset(entry.name for entry in named if entry.default is entry.empty),
        takes_any=any(entry.kind is entry.VAR_KEYWORD for entry in parameters),
    )


def load_file(path: Path) -> Any:
    """A file as a module; those beside it can be imported from it."""
    if not path.is_file():
        raise FileNotFoundError(f"the file {path} does not exist (looked in {Path.cwd()}); check the path")
    look_in(path.parent.resolve())
    name = f"reward_function_{path.stem}"  # a file math.py must not take the place of Python's own
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_module(name: str) -> Any:
    """An installed module, or one that lies where the command runs."""
    look_in(Path.cwd())
    return importlib.import_module(name)


def look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: what is installed comes first


# Reading what came back.


def plain(value: Any) -> Any:
    """Tensors and arrays as numbers and lists, without importing their libraries; dicts entry by entry."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def to_number(said: Mapping[str, Any], *keys: str) -> float | None:
    """The first of the keys that is there: to_number({"rewards": [0.5]}, "score", "rewards") -> 0.5."""
    key = next((key for key in keys if key in said), None)
    if key is None:
        raise ValueError(f"the returned dict has no {' or '.join(keys)}; it has {', '.join(map(str, said))}")
    value = said[key]
    while isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError(f"it returned {len(value)} values for one response")
        value = plain(value[0])
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise ValueError(f"it returned {str(value)[:60]!r} of type {type(value).__name__}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"it returned {value}, not a finite number")
    return float(value)


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


def ignore(*_: Any, **__: Any) -> None:
    """TRL's callbacks for extra columns and metrics."""
