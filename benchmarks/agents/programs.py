"""What the endpoint costs: the same episodes as an environment's, and as programs that ask by HTTP.

A random model speaks, the world answers at once with a tool's message, for 1 to 8 turns. Both sides play on the
same engine with the same rows, and it is checked that both gave the same tokens.

    python benchmarks/agents/programs.py
The last line is JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import time
from typing import Any
from urllib.parse import urlsplit

import torch
from episodes import MAX_NEW, MOST_TURNS, build, count_prompt_tokens, make_problems, right, spec

from foresail.agents.build import Episodes
from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.agents.factory import EnvironmentFactory
from foresail.agents.programs.build import ProgramEpisodes
from foresail.agents.programs.endpoint import Endpoint
from foresail.agents.programs.program import Agent, FunctionProgram, Programs
from foresail.recipe.tables.parts import Rollout
from foresail.records import Message
from foresail.rollout.build import gather
from foresail.rollout.native import NativeInstance
from foresail.rollout.stream import sample_all
from foresail.tokenizer.train import train_bpe


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=256)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = train_bpe(["tool says 0123456789"], vocab_size=280)
    problems = make_problems(options.episodes // 4, tokenizer)
    environments, endpoint = Environments(World, step_seconds=600), Endpoint()
    programs = Programs(FunctionProgram(program))
    kinds = {
        "environment": Episodes(
            factory=EnvironmentFactory(make=World), environments=environments, max_turns=MOST_TURNS
        ),
        "program": ProgramEpisodes(
            programs=programs, endpoint=endpoint, max_turns=MOST_TURNS, turn_seconds=600
        ),
    }
    figures: dict[str, Any] = vars(options)
    played: dict[str, Any] = {}
    for name, episodes in kinds.items():
        engine = build(tokenizer, options.rows, options.device)
        computed, max_length = count_prompt_tokens(engine), MAX_NEW + 64
        fleet = gather([NativeInstance("engine", engine)], Rollout(), max_length=max_length)
        start = time.perf_counter()
        groups = [
            *sample_all(fleet, problems, spec(), right, stream=episodes.stream(tokenizer, max_length))  # type: ignore[attr-defined]
        ]
        seconds = time.perf_counter() - start
        played[name] = {group.problem.id: [sample.ids for sample in group.samples] for group in groups}
        turns = sum(sample.turns[-1] + 1 for group in groups for sample in group.samples)
        figures[name] = {
            "seconds": round(seconds, 2),
            "prompt_tokens_computed": sum(computed),
            "turns": turns,
        }
        print(name, figures[name], flush=True)
    assert played["environment"] == played["program"], "the two sides played other episodes"
    environments.close()
    endpoint.close()
    print(json.dumps(figures))


def said_to(problem: str, response: str) -> str | None:
    """A tool's message, or the end; it follows from the problem and the turn."""
    numbers = random.Random(f"{problem} {response}")
    return None if numbers.random() < 1 / 4 else f"says {numbers.randrange(10**6)}"


class World:
    async def reset(self, problem: Any) -> None:
        self.problem = problem

    async def step(self, response: str) -> Observation:
        said = said_to(self.problem.id, response)
        return Observation(messages=(Message(role="tool", content=said),) if said else (), done=said is None)

    async def close(self) -> None: ...


def program(agent: Agent) -> None:
    connection = http.client.HTTPConnection(urlsplit(agent.base_url).netloc)
    messages: list[Any] = agent.messages
    while True:
        body = json.dumps({"model": agent.model, "messages": messages})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {agent.api_key}"})
        reply = json.load(connection.getresponse())
        if "error" in reply:  # no room, or no turn left
            break
        message = reply["choices"][0]["message"]
        said = said_to(agent.problem.id, message["content"])
        if said is None:
            break
        messages = [*messages, message, {"role": "tool", "content": said}]
    connection.close()


if __name__ == "__main__":
    main()
