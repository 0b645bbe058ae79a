"""Every function that reads what a policy, a tool or a program wrote, for `attack_length.py`.

A new function that reads such text belongs here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from http.client import HTTPException, parse_headers
from io import BytesIO
from typing import Any, Literal, NamedTuple

import attack_pieces
import numpy as np

from foresail.agents.openenv import ActionForm
from foresail.agents.openenv import show as show_observation
from foresail.agents.programs.chat_request import read_request
from foresail.agents.programs.chat_turns import split_calls, with_calls
from foresail.agents.tools.calculator import calculate
from foresail.agents.tools.call_formats import Hermes, Tags, ToolCall
from foresail.agents.tools.markup import neutralise
from foresail.agents.tools.python_tool import is_error, last_line
from foresail.agents.tools.search_client import read_answer
from foresail.agents.tools.search_server import read_request as read_query
from foresail.agents.tools.tool import in_a_line, tool_of
from foresail.agents.tools.tool_environment import ToolEnvironment
from foresail.agents.tools.tool_environment import shorten as shorten_result
from foresail.chat.errors import Refusal
from foresail.chat.http_limits import LimitedInput, parse_length
from foresail.chat.reply import cut_at
from foresail.chat.request import ChatMessage, ChatToolCall, FunctionCall, read_json
from foresail.data.long_context.item import recall
from foresail.data.made.multi_hop_world import FactWorld
from foresail.engine.stop_strings import StopStrings
from foresail.engine.thinking import thinks
from foresail.evaluation.solutions import first_of_each
from foresail.judge.grader import add_prelude, call_methods
from foresail.judge.programs.compare import same_output, same_value
from foresail.judge.programs.fences import find_program, guess_language
from foresail.judge.programs.program import CallTest, OutputComparison, Program
from foresail.judge.wire import decode
from foresail.maths import exact, short_answers, verdict
from foresail.maths.extract import extract
from foresail.records import Message, Problem, final_text
from foresail.rewards.returned_rewards import to_verdict
from foresail.rewards.shaping import format_penalty, language_penalty
from foresail.rollout.drafts import suffixes
from foresail.runlog.samples import shorten
from foresail.tokenizer.foreign_text import without_specials
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe


class Reader(NamedTuple):
    """`rooms`: packages whose patterns mention the words that matter to it; `pieces`: further ones."""

    read: Callable[[str], object]
    rooms: tuple[str, ...]
    frames: tuple[tuple[str, str], ...]
    pieces: tuple[str, ...]


def to_bytes(text: str) -> bytes:
    return text.encode(errors="replace")


# Grading.


def read_code(text: str) -> object:
    """All that is done with a program before it runs."""
    program = find_program(text) or Program(source=text, language="python")
    tests = [CallTest(function="f", arguments=(), expected=1)]
    return call_methods(tests, program), add_prelude(program, "import math")


def compare_output(text: str) -> object:
    close = OutputComparison(mode="numbers", relative=1e-6, absolute=1e-6)
    return [
        same_output(to_bytes(text), f"{text} 1", each) for each in (OutputComparison(mode="tokens"), close)
    ]


def compare_tables(text: str) -> object:
    return same_value(text, text, 1e-6, 1e-6)


def read_reward(text: str) -> object:
    return to_verdict({"score": 1.0, "said": text, "list": [text]}, name="f", threshold=1.0)


# Agents.


def search(query: str) -> str:
    """Search.

    query: words
    """
    return query


SEARCH = tool_of(search)
HERMES, TAGS = Hermes(), Tags([SEARCH])
WORLD = FactWorld("train:0:1", held_out_people=False, held_out_relations=False)


def take_turn(text: str) -> object:
    """A turn's calls are read and carried out, and their results written."""

    async def turn() -> object:
        environment = ToolEnvironment([SEARCH], HERMES)
        await environment.reset(Problem(id="", prompt=(), answer=""))
        return await environment.step(text)

    return asyncio.run(turn())


def read_arguments(text: str) -> object:
    written = HERMES.write(ToolCall("search", {"query": text, text: 1}))
    return SEARCH.read({"query": text}), HERMES.parse(written)


def read_passages(text: str) -> object:
    return read_answer(json.dumps({"passages": [{"title": text, "text": text}]}).encode())


def send_back(text: str) -> object:
    call = ChatToolCall(id="1", function=FunctionCall(name="f", arguments=text))
    return with_calls(ChatMessage(role="assistant", content=text, tool_calls=(call,)))


class Connection:
    """A client that sends these bytes, some at a time."""

    def __init__(self, sent: bytes) -> None:
        self.source = BytesIO(sent)

    def gettimeout(self) -> None: ...

    def settimeout(self, seconds: float) -> None: ...

    def recv(self, size: int) -> bytes:
        return self.source.read(min(size, 512))


def read_head(text: str) -> object:
    """A request's head as the server reads it: line by line, then its length."""
    source: Any = LimitedInput(Connection(to_bytes(text)))  # type: ignore[arg-type]
    source.limit(1 << 17, 600.0)
    headers = parse_headers(source)
    return headers.get("Authorization", ""), parse_length(headers.get_all("Content-Length", []), [], 100)


# Tokens.

STOPS = StopStrings([bytes([byte]) for byte in range(256)])


def find_stop(text: str) -> int:
    return STOPS.state(("</answer>", "\n\n\n", "aab"), [*to_bytes(text)])


def write_drafts(text: str) -> tuple[int, int]:
    """The bytes of a text as the tokens of a sample, from which drafts are made."""
    slab = np.zeros(suffixes.SLAB_PER_TOKEN << max(3, len(text).bit_length() + 2), dtype=np.int32)
    suffixes.clear(slab)
    whole = recent = suffixes.ROOT
    for token in to_bytes(text):
        whole, recent = suffixes.append(suffixes.flat(slab), whole, recent, token, 32)
    return whole, recent


@cache
def tokenizer(alphabet: Literal["bytes", "seen"], template: str = "hybrid-short") -> Tokenizer:
    """A small one; "seen" knows few characters, and has a token for all others."""
    texts = ["So 4+3=7. I think, search Paris <?>"] * 20
    return train_bpe(texts, vocab_size=300, alphabet=alphabet, chat_template=BUILT_IN[template][0])


def write_turn(text: str) -> object:
    said = [Message(role="tool", content=text)]
    return [tokenizer(kind).encode_next_turn(said, ended=True) for kind in ("bytes", "seen")]


def write_conversation(text: str) -> object:
    said = [Message(role="user", content="2+2?"), Message(role="assistant", content=text)]
    return tokenizer("bytes").encode_conversation(said)


def write_and_read(text: str) -> str:
    known = tokenizer("bytes")
    return known.decode(known.encode_text(text), skip_special_tokens=True)


# What a reader may raise of a text that it refuses.
REFUSALS = (ValueError, Refusal, HTTPException)


def taken(read: Callable[[str], object]) -> Callable[[str], object]:
    """A refusal is an answer, too."""

    def reading(text: str) -> object:
        with suppress(*REFUSALS):
            return read(text)
        return None

    return reading


MATHS = partial(Reader, rooms=("foresail.maths",), frames=attack_pieces.ANSWERS, pieces=attack_pieces.MATHS)
QA = partial(
    Reader,
    rooms=("foresail.maths.short_answers",),
    frames=attack_pieces.SHORT_ANSWERS,
    pieces=attack_pieces.QA,
)
CODE = partial(Reader, rooms=("foresail.judge",), frames=attack_pieces.PROGRAMS, pieces=attack_pieces.CODE)
TABLE = partial(
    Reader, rooms=("foresail.judge.sandbox",), frames=attack_pieces.TABLES, pieces=attack_pieces.VALUES
)
SHAPED = partial(
    Reader, rooms=("foresail.rewards",), frames=attack_pieces.THOUGHT, pieces=attack_pieces.THOUGHTS
)
AGENT = partial(
    Reader, rooms=("foresail.agents.tools",), frames=attack_pieces.CALLS, pieces=attack_pieces.TOOLS
)
WIRE = partial(
    Reader, rooms=("foresail.agents.programs",), frames=attack_pieces.WIRES, pieces=attack_pieces.REQUESTS
)
HEAD = partial(Reader, rooms=("foresail.agents",), frames=attack_pieces.HEADS, pieces=attack_pieces.HEADERS)
WRITTEN = partial(
    Reader, rooms=("foresail.tokenizer",), frames=attack_pieces.THOUGHT, pieces=attack_pieces.SPECIALS
)

READERS: dict[str, Reader] = {
    "maths": MATHS(lambda text: verdict.grade(text, "7341")),
    "maths, boxed only": MATHS(lambda text: verdict.grade(text, r"\frac{1}{3}", accept="boxed")),
    "maths, stated": MATHS(lambda text: extract(text, "stated")),
    "maths, a set": MATHS(lambda text: verdict.grade(text, r"\{1,2\}")),
    "maths, a word": MATHS(lambda text: verdict.grade(text, "Tuesday")),
    "maths, a choice": MATHS(lambda text: verdict.grade(text, "B")),
    "maths, a vote": MATHS(verdict.ballot),
    "maths, a solution": MATHS(verdict.right_answer),
    "qa": QA(lambda text: short_answers.grade(text, ["Paris", "city of Paris"])),
    "qa, a vote": QA(short_answers.ballot),
    "exact": QA(lambda text: (exact.grade(text, "Paris"), exact.ballot(text))),
    "code": CODE(find_program),
    "code, its language": CODE(guess_language),
    "code, before it runs": CODE(read_code),
    "output": CODE(compare_output),
    "value": TABLE(taken(compare_tables)),
    "value, rebuilt": TABLE(taken(decode)),
    "thinking": SHAPED(final_text),
    "thinking, a penalty": SHAPED(lambda text: format_penalty(text, weight=1.0)),
    "thinking, in bytes": SHAPED(lambda text: thinks(b"<think>", to_bytes(text))),
    "language": SHAPED(lambda text: language_penalty("What is 3+4?", text, weight=1.0)),
    "reward": SHAPED(taken(read_reward)),
    "sample shown": SHAPED(lambda text: shorten(text, 480)),
    "solutions": SHAPED(lambda text: [*first_of_each([text, text])]),
    "long context": SHAPED(lambda text: recall(text, ["4821", "7"])),
    "calls": AGENT(HERMES.parse),
    "calls in tags": AGENT(TAGS.parse),
    "calls in replies": AGENT(lambda text: split_calls(text, "1")),
    "calls sent back": AGENT(send_back),
    "turn of tools": AGENT(take_turn),
    "arguments": AGENT(taken(read_arguments)),
    "calculator": AGENT(taken(calculate)),
    "multi-hop search": AGENT(WORLD.search),
    "actions": AGENT(taken(ActionForm(fields=("a", "b")).read)),
    "actions, a number": AGENT(taken(ActionForm(fields=("a",), only="a", kind="integer").read)),
    "observations": AGENT(lambda text: show_observation({"text": text, "other": text})),
    "results": AGENT(lambda text: [format.observe([text]) for format in (HERMES, TAGS)]),
    "results, cut": AGENT(lambda text: shorten_result(text, 4000)),
    "results of Python": AGENT(lambda text: (is_error(text), last_line(text))),
    "results of search": AGENT(taken(read_passages)),
    "errors": AGENT(lambda text: in_a_line(ValueError(text))),
    "markers": AGENT(lambda text: neutralise(text, (*HERMES.MARKERS, "<a>", "<a<", "< a"))),
    "replies, cut": AGENT(lambda text: cut_at(text, ("\n\n\n", "</tool_call>"))),
    "requests": WIRE(taken(lambda text: read_request(read_json(to_bytes(text))))),
    "requests of search": WIRE(taken(lambda text: read_query(to_bytes(text)))),
    "heads of requests": HEAD(taken(read_head)),
    "stop strings": AGENT(find_stop),
    "drafts": AGENT(write_drafts),
    "special tokens": WRITTEN(lambda text: without_specials(text, attack_pieces.SPECIALS)),
    "messages": WRITTEN(taken(write_turn)),
    "conversations": WRITTEN(taken(write_conversation)),
    "ids and back": WRITTEN(taken(write_and_read)),
}
