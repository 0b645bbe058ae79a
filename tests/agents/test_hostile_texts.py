"""Nothing that a model or a tool says makes an episode fail, nor its records wrong: a search over hostile texts."""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial
from typing import Any

import pytest
from hostile_texts import CHARACTERS, MARKUP, make_text, own_words
from small_programs import ask, user
from small_programs import play as play_programs
from small_worlds import TOKENIZER, engine_of, problems, random_model, spec_of

from foresail.agents.environment import Observation
from foresail.agents.environments import Environments
from foresail.agents.episodes import EpisodeStream
from foresail.agents.figures import EpisodeFigures
from foresail.agents.programs.program import Agent
from foresail.agents.tools.call_formats import CallFormat, Hermes, Tags, ToolCall
from foresail.agents.tools.tool import tool_of
from foresail.agents.tools.tool_environment import ToolEnvironment
from foresail.recipe.tables.parts import Rollout
from foresail.records import FAILURES, Group, Message, Problem, Sample, Verdict
from foresail.rewards.grading import settled
from foresail.rollout.build import gather
from foresail.rollout.native import NativeInstance
from foresail.rollout.stream import sample_all
from foresail.tokenizer.foreign_text import UnwritableText
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

MODEL = random_model()
# One that knows few characters, and a template that refuses some words, as strangers' templates do.
SMALL: Tokenizer = train_bpe(["user tool assistant 4 a?"], vocab_size=60, alphabet="seen")
PICKY = (
    "{% for message in messages %}{% if 'foresail' in message.content or not message.content %}"
    "{{ raise_exception('such words') }}{% endif %}{{ message.role }} {{ message.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}assistant {% endif %}"
)
CHOOSY: Tokenizer = train_bpe(["ask the world, it says 1 or 2"], vocab_size=270, chat_template=PICKY)


def texts(seed: int, count: int) -> list[str]:
    numbers = random.Random(seed)
    return [*MARKUP, *CHARACTERS, *(make_text(numbers) for _ in range(count))]


@pytest.mark.parametrize("tokenizer", [TOKENIZER, SMALL], ids=["bytes", "few characters"])
def test_a_result_stands_where_it_belongs_whatever_it_says(tokenizer: Tokenizer) -> None:
    """Around it is what stands around any other, and no special token more."""
    plain = tokenizer.encode_next_turn([Message(role="tool", content="4")], ended=True)
    specials = {id for token in tokenizer.special_tokens() if (id := tokenizer.token_id(token)) is not None}
    head, _, tail = tokenizer.decode(plain).partition("4")
    for text in texts(0, 300):
        ids = tokenizer.encode_next_turn([Message(role="tool", content=text)], ended=True)
        said = tokenizer.decode(ids)
        assert said.startswith(head) and said[len(head) :].endswith(tail)
        assert [id for id in ids if id in specials] == [id for id in plain if id in specials]
        assert tokenizer.encode_text(f"<{text}>") is not None


def test_no_word_of_the_package_s_own_is_special_to_it() -> None:
    words = own_words()
    assert len(words) > 2000
    for first in range(0, len(words), 50):
        several = [Message(role="tool", content=text) for text in words[first : first + 50]]
        assert TOKENIZER.encode_next_turn(several, ended=True)


def test_what_a_template_refuses_is_told_from_what_it_never_writes() -> None:
    tool = partial(Message, role="tool")
    for tokenizer, text in ((CHOOSY, "foresail"), (CHOOSY, "")):
        with pytest.raises(UnwritableText, match="such words"):
            tokenizer.encode_next_turn([tool(content="4"), tool(content=text)], ended=True)
        with pytest.raises(UnwritableText, match="such words"):
            tokenizer.encode_request([tool(content=text)])
    never = train_bpe(["a"], vocab_size=270, chat_template="{{ raise_exception('never') }}{{ eos_token }}")
    with pytest.raises(ValueError, match="never") as error:
        never.encode_next_turn([tool(content="4")], ended=True)
    assert not isinstance(error.value, UnwritableText)


# Whole episodes.


def echo(text: str) -> str:
    """Say it again."""
    return text


def fail(text: str) -> str:
    """Fail with these words."""
    raise ValueError(text)


class Notes:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def __call__(self, text: str) -> Any:
        """Take a note.

        text: what to note
        """
        self.kept.append(text)
        return {"notes": self.kept, "last": text}


TOOLS = [tool_of(echo), tool_of(fail), tool_of(Notes, name="notes")]


class Possessed:
    """Tools that answer a model which says something else than it was drawn: calls of hostile texts."""

    def __init__(self, format: CallFormat, seed: int) -> None:
        self.tools, self.seed = ToolEnvironment(TOOLS, format, max_turns=5, max_result_chars=60), seed
        self.format = format

    async def reset(self, problem: Problem) -> None:
        self.problem = problem
        await self.tools.reset(problem)

    async def step(self, response: str) -> Observation:
        numbers = random.Random(f"{self.seed} {self.problem.id} {response}")
        return await self.tools.step("".join(self.say(numbers) for _ in range(numbers.randint(1, 3))))

    def say(self, numbers: random.Random) -> str:
        text = make_text(numbers)
        known = numbers.random() < 0.7
        name = numbers.choice([tool.name for tool in TOOLS]) if known else make_text(numbers)
        match numbers.randrange(4):
            case 0:
                return text
            case 1:
                return f'<tool_call>{{"name": "{text}", "arguments": {{}}}}</tool_call>'
            case 2 if isinstance(self.format, Tags):
                return f"<{name}>{text}</{name}>"
            case _:
                return Hermes().write(ToolCall(name, {"text": text}))

    async def close(self) -> None:
        await self.tools.close()


def right(problem: Problem, sample: Sample) -> Any:
    return settled(Verdict(status="correct", score=1.0))


def check_records(groups: list[Group]) -> None:
    for group in groups:
        assert not [verdict for verdict in group.verdicts if verdict.status in FAILURES]
        for record in (record for sample in group.samples for record in sample.records):
            sizes = {len(part) for part in (record.ids, record.loss_mask, record.logprobs, record.turns)}
            assert sizes == {len(record.ids)} and sum(record.loss_mask) > 0
            assert record.turns == sorted(record.turns)
            for on, logprob in zip(record.loss_mask, record.logprobs, strict=True):
                assert on or logprob == 0.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("format", [Hermes(), Tags(TOOLS)], ids=["hermes", "tags"])
@pytest.mark.parametrize("tokenizer", [TOKENIZER, CHOOSY], ids=["usual", "refuses some words"])
def test_no_episode_fails_by_what_is_said(seed: int, format: CallFormat, tokenizer: Tokenizer) -> None:
    environments = Environments(partial(Possessed, format, seed), step_seconds=300.0)
    fleet = gather([NativeInstance("0", engine_of(MODEL))], Rollout(), max_length=96)
    stream = partial(EpisodeStream, environments=environments, tokenizer=tokenizer, max_turns=5)
    try:
        check_records([*sample_all(fleet, problems(6), spec_of(), right, stream=stream)])
        names = {name for name in environments.figures.take() if name.startswith("agent/tool_seconds/")}
        assert names <= {f"agent/tool_seconds/{tool.name}" for tool in TOOLS}
    finally:
        environments.close()
    assert not fleet.busy and not fleet.held


def test_no_program_is_refused_for_what_a_tool_says() -> None:
    """A program that passes on whatever its tools say, with a client that raises what it is refused."""

    def run(agent: Agent) -> str:
        numbers = random.Random(agent.problem.id)
        messages: list[Any] = agent.messages
        for _ in range(3):
            said = ask(agent, messages, max_tokens=3)["message"]
            text = make_text(numbers)[:20].encode(errors="replace").decode()
            messages = [*messages, said, {"role": "tool", "content": text}, user(text)]
        return "done"

    groups = play_programs(run, count=6, figures=EpisodeFigures())
    check_records([*groups.values()])


# Time.


class Slow:
    """Each call takes its time."""

    def __call__(self, text: str) -> str:
        """Wait.

        text: anything
        """
        time.sleep(0.05)
        return text


def test_no_turn_is_made_so_long_that_it_passes_for_a_broken_world() -> None:
    environment = ToolEnvironment([tool_of(Slow, name="slow")], Hermes(), turn_seconds=0.12)
    calls = "".join(Hermes().write(ToolCall("slow", {"text": str(n)})) for n in range(32))

    async def go() -> Observation:
        await environment.reset(problems(1)[0].problem)
        try:
            return await environment.step(calls)
        finally:
            await environment.close()

    began = time.monotonic()
    said = [message.content for message in asyncio.run(go()).messages]
    assert said[0] == "0" and said[-1].startswith("error: not called") and time.monotonic() - began < 1.0
