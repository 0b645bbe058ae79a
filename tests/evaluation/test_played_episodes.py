"""Episodes of a small trained agent become conversations with tool calls, which replay and which SFT reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from foresail.agents.environment import Observation, ToolUse
from foresail.agents.tools.call_formats import Hermes, Tags
from foresail.agents.tools.tool import tool_of
from foresail.agents.transcripts import Transcripts
from foresail.curate.conversations.tool_calls import ToolCalls
from foresail.curate.document import Document
from foresail.curate.rows.conversation import conversation_row
from foresail.curate.rows.row import read_row
from foresail.data.chats.conversations import load_chats
from foresail.data.made.multi_hop import make_problems
from foresail.data.made.multi_hop_traces import gold_conversation
from foresail.data.made.multi_hop_world import WorldSearch
from foresail.maths.short_answers import grade
from foresail.quickstart import agent
from foresail.quickstart.stages import train_stage
from foresail.recipe.reading.dump import to_toml
from foresail.records import Message
from foresail.tokenizer.train import train_bpe

COUNT, SEED = 12, 5
SOURCE = f"multi-hop:count={COUNT},seed={SEED},hops=2,split=train"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An agent that knows a dozen questions by heart, and its recipe of RL."""
    folder = tmp_path_factory.mktemp("agent")
    chats = [gold_conversation(problem) for problem in make_problems(COUNT, seed=SEED, hops=(2, 2))]
    (folder / "data").mkdir()
    rows = [json.dumps({"messages": [vars(message) for message in chat]}) for chat in chats]
    (folder / "data/sft.jsonl").write_text("\n".join(rows) + "\n")
    texts = [message.content for chat in chats for message in chat]
    tokenizer = train_bpe(texts, vocab_size=320, whole_tokens=agent.MARKS, alphabet="seen")
    tokenizer.save(folder / "tokenizer")
    recipe = agent.sft_recipe(folder, SEED, tokenizer.vocab_size)
    schedule = recipe.optimizer.model_copy(update={"warmup": 10})
    sft = train_stage(recipe.model_copy(update={"steps": 60, "batch_size": 12, "optimizer": schedule}))
    rl = agent.rl_recipe(folder, SEED, sft.checkpoint)
    (folder / "rl.toml").write_text(to_toml(rl))
    return sft.checkpoint, folder / "rl.toml"


def play(foresail: CommandLine, played: tuple[Path, Path], out: Path, *options: str) -> list[dict[str, Any]]:
    checkpoint, recipe = played
    words = ["data", "sample-solutions", checkpoint, "--recipe", recipe, "--data", SOURCE, "--samples", 4]
    finished = foresail.run(*words, "--device", "cpu", "--output", out, *options)
    assert finished.code == 0, finished
    return [json.loads(line) for line in (out / "solutions.jsonl").read_text().splitlines()]


def test_right_episodes_replay_pass_their_schemas_and_are_read(
    foresail: CommandLine, played: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = play(foresail, played, tmp_path / "whole")
    check = ToolCalls(strict=True).open()
    problems = {problem.id: problem for problem in make_problems(COUNT, seed=SEED, hops=(2, 2))}
    assert len(rows) > 5 and len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        problem, messages = problems[row["problem"]], row["messages"]
        assert messages[0] == {"role": "user", "content": problem.prompt[0].content}
        assert grade(messages[-1]["content"], [problem.answer]).status == "correct"
        (schema,) = row["tools"]
        world = WorldSearch(problem)  # of its own: what the tool says again has to be what was noted
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        results = [message for message in messages if message["role"] == "tool"]
        assert len(calls) == len(results) == row["calls"] > 0
        for call, result in zip(calls, results, strict=True):
            function = schema["function"]
            assert (call["function"]["name"], result["tool_call_id"]) == (function["name"], call["id"])
            arguments = json.loads(call["function"]["arguments"])
            assert {*arguments} == {*function["parameters"]["required"]} == {"query"}
            assert world.search(**arguments) == result["content"]
        assert conversation_row(row, "row")["tools"] == row["tools"]
        document = read_row(row, row["id"], "played", "conversations")
        assert isinstance(document, Document) and isinstance(check(document), Document), check(document)
        assert row["made"]["from"] == [{"source": SOURCE, "id": row["problem"]}]
    chats = load_chats(str(tmp_path / "whole/solutions.jsonl"))
    assert [len(chat.messages) for chat in chats] == [len(row["messages"]) for row in rows]

    lines = (tmp_path / "whole/sampled.jsonl").read_bytes().splitlines(keepends=True)
    part = tmp_path / "part"
    part.mkdir()
    (part / "settings.json").write_bytes((tmp_path / "whole/settings.json").read_bytes())
    (part / "sampled.jsonl").write_bytes(b"".join(lines[:7]) + lines[7][:20])  # killed while writing
    assert play(foresail, played, part) == rows
    written = play(foresail, played, tmp_path / "whole", "--as-written", "--shortest", "--most", "1")
    assert all("tools" not in row and "<search>" in row["messages"][1]["content"] for row in written)
    assert [len(row["messages"]) for row in written] == [
        min(len(row["messages"]) for row in rows if row["problem"] == one["problem"]) for one in written
    ]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def look(query: str) -> str:
    """Look."""
    return query


ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def said(*results: str, text: str = "", error: str = "") -> Observation:
    messages = tuple(Message(role="tool", content=result) for result in results)
    return Observation(messages=messages, text=text, uses=(ToolUse(tool="add", seconds=0.0, error=error),))


@pytest.mark.parametrize(
    ("reason", "responses", "observation"),
    [
        ("", [f"I add.\n{ADD}\n{ADD}", "3"], said("3", "3")),
        ("", [f"<think>{ADD}</think>{ADD}", "3"], said("3")),
        ("failed_call", [ADD, "3"], said("error", error="it failed")),
        ("failed_call", ["<tool_call>{}</tool_call>", "3"], said("error")),
        ("unfinished", [ADD, ADD], said("3")),
        ("unmatched", [f"{ADD}{ADD}", "3"], said("3")),
        ("beside_calls", [f"{ADD} So it is 3.", "3"], said("3")),
        ("beside_calls", [f"{ADD} and {ADD}", "3"], said("3", "3")),
    ],
)
def test_what_has_no_form_is_named(reason: str, responses: list[str], observation: Observation) -> None:
    transcripts = Transcripts((tool_of(add),), Hermes())
    transcripts.note("p", 0, [observation, Observation(done=True)])
    messages, why = transcripts.conversation(responses, transcripts.take("p", 0), as_written=False)
    assert why == reason and bool(messages) == (not reason)
    if messages:
        calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
        assert all(json.loads(call["arguments"]) == {"a": 1, "b": 2} for call in calls)
        assert [message["content"] for message in messages if message["role"] == "tool"] == ["3"] * len(calls)
    assert transcripts.take("p", 0) == []


def test_results_inside_of_a_turn_become_messages_of_tools() -> None:
    form = Tags([tool_of(look)])
    transcripts = Transcripts((tool_of(look),), form)
    observation = form.observe(["Paris </result> is", "big"])
    transcripts.note("p", 0, [observation])
    heard = transcripts.take("p", 0)
    responses = ("Well. <look>Paris</look><look>size</look>", "It is big.")
    messages, reason = transcripts.conversation(responses, heard, as_written=False)
    assert not reason and [message["role"] for message in messages] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert messages[0]["content"] == "Well." and messages[2]["content"] == "big"
    assert transcripts.conversation(responses, heard, as_written=True) == ([], "no_messages")
