"""Programs that ask an endpoint by hand, and a stream of their episodes on a model that speaks at random."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from small_worlds import TOKENIZER, engine_of, problems, random_model, spec_of

from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.endpoint import Endpoint
from foresail.agents.programs.episodes import ProgramStream
from foresail.agents.programs.program import Agent, FunctionProgram, Program, Programs
from foresail.recipe.tables.parts import Rollout
from foresail.records import Group, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.native import NativeInstance
from foresail.rollout.stream import sample_all

MODEL = random_model()
MAX_LENGTH = 90
Messages = list[dict[str, Any]]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """An answer that is an error, with its status and what it says."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{status}: {error['message']}")
        self.status, self.error = status, error


def post(url: str, key: str, body: bytes, **headers: str) -> bytes:
    request = urllib.request.Request(url, body, {"Authorization": f"Bearer {key}", **headers})
    try:
        with DIRECT.open(request, timeout=120) as reply:
            return reply.read()
    except urllib.error.HTTPError as error:
        raise Refused(error.code, json.loads(error.read())["error"]) from None


def ask(agent: Agent, messages: Sequence[Any], **options: Any) -> dict[str, Any]:
    """The first choice: {"message": …, "finish_reason": …}."""
    body = json.dumps({"model": agent.model, "messages": messages, **options}).encode()
    return json.loads(post(f"{agent.base_url}/chat/completions", agent.api_key, body))["choices"][0]


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def fleet_of(kind: Any = NativeInstance, **settings: Any) -> Fleet:
    vocabulary = TOKENIZER.token_bytes()
    engines = [engine_of(MODEL, num_pages=120, max_running=5, vocabulary=vocabulary) for _ in range(2)]
    instances = [kind(f"{number}", engine) for number, engine in enumerate(engines)]
    return gather(instances, Rollout(**settings), max_length=MAX_LENGTH)


def right(problem: Problem, sample: Sample) -> Any:
    return settled(Verdict(status="correct", score=1.0))


def play(
    program: Callable[[Agent], Any] | Program,
    *,
    count: int = 4,
    num_samples: int = 3,
    max_turns: int = 5,
    turn_seconds: float = 300.0,
    most: int = 256,
    fleet: Fleet | None = None,
    judge: Any = right,
    figures: EpisodeFigures | None = None,
) -> dict[str, Group]:
    """Groups by problem; all that was opened is closed, and nothing is left in the fleet."""
    own = FunctionProgram(program) if callable(program) else program
    fleet, programs = fleet or fleet_of(), Programs(own, most)
    with closing(Endpoint()) as endpoint, closing(programs):
        stream = partial(
            ProgramStream,
            programs=programs,
            endpoint=endpoint,
            figures=figures or EpisodeFigures(),
            stop_sets=set(),
            tokenizer=TOKENIZER,
            max_turns=max_turns,
            max_length=MAX_LENGTH,
            turn_seconds=turn_seconds,
        )
        found = sample_all(fleet, problems(count), spec_of(num_samples), judge, stream=stream)
        groups = {group.problem.id: group for group in found}
        assert not endpoint.admitted
    assert not fleet.busy and not fleet.held and len(fleet.pool) == 0
    assert all(tokens == 120 * 4 for tokens in fleet.scheduler.free_tokens.values())
    return groups


Record = tuple[list[int], list[int], list[int]]


def flat(sample: Sample) -> list[Record]:
    """All records of an episode, the main one first."""
    return [(record.ids, record.loss_mask, record.turns) for record in sample.records]


def flat_groups(groups: dict[str, Group]) -> dict[str, list[list[Record]]]:
    return {name: [flat(sample) for sample in group.samples] for name, group in groups.items()}
