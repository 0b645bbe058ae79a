"""How prompts tell of tools: by the chat template, in the system prompt, or not at all; in a check as in a run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_worlds import TOKENIZER
from tiny_world import write_lines

from foresail.agents.build import open_episodes
from foresail.agents.factory import open_factory
from foresail.check.inspection import inspect_sources
from foresail.data.mixtures.reader import Reader
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.parts import Problems
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.rl import run_rl

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}assistant: "
WRITES_TOOLS = "{% if tools %}TOOLS {{ tools | tojson }}{% endif %}" + PLAIN
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + PLAIN
NO_TOOL_TURN = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('tool?') }}{% endif %}{% endfor %}"
)


def speaker(template: str) -> Tokenizer:
    return Tokenizer(replace(TOKENIZER.files, chat_template=template))


def prompt(tokenizer: Tokenizer, folder: Path, system: str | None = None, **settings: Any) -> str:
    """What the model sees of the problem "2 + 2"."""
    source = Problems(
        source=str(write_lines(folder / "data.jsonl", [{"prompt": "2 + 2", "answer": "4"}])), system=system
    )
    with open_factory(Environment(tools=("calculator",), **settings)) as factory:
        reader = factory.reader(tokenizer)
    (entry,) = reader.problems(source)
    return reader.tokenizer.decode(entry.ids)


CALL = {"tags": "<calculator>expression</calculator>", "hermes": "<tool_call>\n"}


@pytest.mark.parametrize(
    ("call_format", "template", "instructions", "by_template", "in_system"),
    [
        ("tags", WRITES_TOOLS, None, False, True),
        ("tags", WRITES_TOOLS, False, False, False),
        ("hermes", WRITES_TOOLS, None, True, False),
        ("hermes", WRITES_TOOLS, True, False, True),
        ("hermes", WRITES_TOOLS, False, True, False),
        ("hermes", PLAIN, None, False, True),  # which takes no notice of tools
        ("hermes", PLAIN, False, False, False),
    ],
)
def test_tools_are_told_of_once(
    tmp_path: Path,
    call_format: str,
    template: str,
    instructions: bool | None,
    by_template: bool,
    in_system: bool,
) -> None:
    text = prompt(speaker(template), tmp_path, format=call_format, instructions=instructions)
    assert ("TOOLS" in text) == by_template
    assert (CALL[call_format] in text) == in_system
    assert text.count("Compute an arithmetic expression") == by_template + in_system <= 1
    assert text.endswith("user: 2 + 2" + TOKENIZER.files.special_token("eos_token") + "assistant: ")


def test_instructions_are_the_end_of_the_system_prompt_that_the_data_has(tmp_path: Path) -> None:
    text = prompt(speaker(PLAIN), tmp_path, "Be brief.", format="tags")
    assert text.startswith("system: Be brief.\n\nYou may use these tools") and text.count("system:") == 1


def test_what_a_template_cannot_write_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no system role.*environment\.instructions = false"):
        prompt(speaker(NO_SYSTEM), tmp_path, format="tags")
    with pytest.raises(ValueError, match=r"tool\?; tools need a template"):
        prompt(speaker(NO_TOOL_TURN + WRITES_TOOLS), tmp_path)
    assert "2 + 2" in prompt(speaker(NO_SYSTEM), tmp_path, format="tags", instructions=False)


# In a check, and in a run.

RECIPE = """
stage = "rl"
steps = 1
prompts_per_step = 2
samples_per_prompt = 2
max_prompt_tokens = {room}
micro_batch_tokens = 2048
data = {{ source = "data.jsonl" }}
sampling = {{ max_new_tokens = 4 }}
dynamic_sampling = {{ enabled = false }}
run = {{ device = "cpu", root = "." }}
[environment]
tools = ["{tool}"]
format = "tags"
[model]
tokenizer = "tokenizer"
shape = {{ vocab_size = 300, hidden_size = 16, intermediate_size = 16, num_layers = 1, num_heads = 2, \
num_kv_heads = 1, head_dim = 8, max_context = 1024 }}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TOKENIZER.save("tokenizer")
    write_lines(Path("data.jsonl"), [{"prompt": f"{n} + 2", "answer": str(n + 2)} for n in range(4)])
    return tmp_path


def recipe(room: int = 900, tool: str = "calculator") -> Rl:
    Path("recipe.toml").write_text(RECIPE.format(room=room, tool=tool))
    loaded = load_recipe("recipe.toml")
    assert isinstance(loaded, Rl)
    return loaded


def test_a_check_measures_the_prompts_that_the_run_has(folder: Path) -> None:
    seen = inspect_sources(recipe(), max_context=1024)
    assert seen.refusals == () and seen.reader is not None
    assert "environment: tools calculator; the system prompt tells of them" in seen.notes
    longest = max(int(number) for note in seen.notes for number in re.findall(r"to (\d+) tokens", note))
    assert "longer than" in inspect_sources(recipe(longest - 1), max_context=1024).refusals[0]
    # the run reads them itself, or takes over what the check has read
    for name, reader in (("own", None), ("taken", seen.reader)):
        given = recipe()
        outcome = run_rl(
            given.model_copy(update={"run": given.run.model_copy(update={"name": name})}), reader=reader
        )
        rows = RunDirectory(outcome.run).read_rollouts(1)
        assert {row["ids"].index(row["ids"][row["loss_mask"].index(1)]) >= 0 for row in rows} == {True}
        assert max(row["loss_mask"].index(1) for row in rows) == longest


def test_a_reader_that_was_told_otherwise_is_not_taken_over(folder: Path) -> None:
    given, tokenizer = recipe(), Tokenizer.load("tokenizer")
    plain = Reader(tokenizer)
    outcome = run_rl(given, reader=plain)
    assert plain.read_problems == {}
    with open_episodes(given.environment) as episodes:
        assert episodes is not None
        entries = episodes.reader(tokenizer).problems(given.data[0])
    rows = RunDirectory(outcome.run).read_rollouts(1)
    assert {row["loss_mask"].index(1) for row in rows} <= {len(entry.ids) for entry in entries}


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("mine.py:absent", "there is no absent in"),
        ("mine.py:untyped", "the parameter x of untyped has no type"),
    ],
)
def test_a_check_tells_of_tools_that_cannot_be_had(folder: Path, tool: str, words: str) -> None:
    Path("mine.py").write_text("def untyped(x):\n    '''Takes anything.'''\n")
    seen = inspect_sources(recipe(tool=f"{folder}/{tool}"), max_context=1024)
    assert len(seen.refusals) == 1 and words in seen.refusals[0]
