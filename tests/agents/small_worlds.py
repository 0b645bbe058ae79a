"""Worlds whose answers follow from what they are told, and a model that speaks to them at random."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from foresail.agents.environment import EnvironmentBroken, Observation, ToolUse
from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling
from foresail.records import Message, Problem
from foresail.rollout.groups import GroupSpec
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

TOKENIZER: Tokenizer = train_bpe(["ask the world, it says 1 or 2"], vocab_size=270)
MAX_NEW = 40
STOPS = (*TOKENIZER.eos_ids, *TOKENIZER.encode("aeiou"), *range(100, 110))  # many, so that turns are short


def random_model() -> Decoder:
    shape = ModelShape(
        vocab_size=TOKENIZER.vocab_size, hidden_size=16, intermediate_size=16, num_layers=1, num_heads=2,
        num_kv_heads=1, head_dim=8, max_context=96,
    )  # fmt: skip
    return build_model(shape, seed=0)


def engine_of(model: Decoder, **options: Any) -> Engine:
    return Engine(model, **{"num_pages": 400, "page_size": 4} | options)


def spec_of(num_samples: int = 3, **changes: Any) -> GroupSpec:
    given = {"sampling": Sampling(max_new_tokens=MAX_NEW), "num_samples": num_samples, "stop_ids": STOPS}
    return GroupSpec(**{**given, "seed": 0, "step": 1, **changes})


def problems(count: int) -> list[PromptedProblem]:
    return [
        PromptedProblem(
            problem=Problem(id=f"p{n}", prompt=(Message(role="user", content=f"{n}"),), answer=f"{n}"),
            ids=tuple(TOKENIZER.encode(f"ask {n} ")),
        )
        for n in range(count)
    ]


def answer(problem: Problem, response: str) -> Observation:
    """Text, a message, or the end: it follows from the problem and the turn alone."""
    numbers = random.Random(f"{problem.id} {response}")
    kind = numbers.choice(["text", "text", "message", "done"])
    said = "".join(numbers.choice("12 ") for _ in range(numbers.randint(1, 5)))
    use = ToolUse(tool="echo", seconds=0.0, error="" if numbers.random() < 0.7 else "no")
    if kind == "message":
        return Observation(messages=(Message(role="tool", content=said),), uses=(use,), reward=1.0)
    return Observation(text=said if kind == "text" else "", done=kind == "done", uses=(use,))


class World:
    """Answers at once, or after a time that `delay` says; `fault` may raise."""

    open_now = 0

    def __init__(
        self,
        delay: Callable[[], float] = lambda: 0.0,
        fault: Callable[[Problem, str], None] = lambda problem, response: None,
    ) -> None:
        self.delay, self.fault = delay, fault

    async def reset(self, problem: Problem) -> None:
        World.open_now += 1
        self.problem = problem

    async def step(self, response: str) -> Observation:
        await asyncio.sleep(self.delay())
        self.fault(self.problem, response)
        return answer(self.problem, response)

    async def close(self) -> None:
        World.open_now -= 1


class PlainWorld:
    """The same without coroutines."""

    def reset(self, problem: Problem) -> None:
        self.problem = problem

    def step(self, response: str) -> Observation:
        return answer(self.problem, response)

    def close(self) -> None: ...


def breaks(problem: Problem, response: str) -> None:
    if problem.id in ("p1", "p4"):
        raise EnvironmentBroken("the search server is gone")
