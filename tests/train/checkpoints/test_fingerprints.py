"""A run goes on with the data and the reference it began with, or says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tiny_world import rl_recipe, sft_recipe, write_conversations

from foresail.data.problems.prompts import PromptedProblem
from foresail.recipe.tables import parts
from foresail.recipe.tables.environment import Environment
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.tools import McpServer
from foresail.records import Message, Problem
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train import session
from foresail.train.checkpoints.checkpoint import Progress, read_progress
from foresail.train.checkpoints.fingerprints import describe_problem, fingerprint_data, fingerprint_rewards
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

PROBLEM = Problem(
    id="a",
    prompt=(Message(role="user", content="1 +1"),),
    answer="2",
    extra={"tests": [1, {"in": "x"}]},
    level=3,
)
OTHERS: list[dict[str, Any]] = [
    {"id": "b"},
    {"answer": "3"},
    {"level": 4},
    {"level": None},
    {"extra": {"tests": [1, {"in": "y"}]}},
]


def remember(progress: Progress, *entries: PromptedProblem) -> Progress:
    return fingerprint_data(progress, "data.source x", "problems", map(describe_problem, entries))


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_all_that_order_and_verdicts_hang_on_counts(change: dict[str, Any]) -> None:
    entry = PromptedProblem(problem=PROBLEM, ids=(4, 5))
    began = remember(Progress(), entry)
    assert began.data.startswith("1 problems, checksum ") and remember(began, entry) == began
    with pytest.raises(ValueError, match=r"data.source x is not what the run began with \(1 problems"):
        remember(began, replace(entry, problem=replace(PROBLEM, **change)))


def test_what_json_does_not_know_counts_by_its_type() -> None:
    """An address in memory would be another at the next start."""
    entries = [
        PromptedProblem(problem=replace(PROBLEM, extra={"made by": object(), (1, 2): 3}), ids=(4,))
        for _ in range(2)
    ]
    assert remember(Progress(), entries[0]) == remember(Progress(), entries[1])


def test_a_template_that_names_the_day_has_the_run_s_first(
    tiny_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed after midnight, the conversations are those it began with."""
    template = tmp_path / "dated.jinja"
    plain = Tokenizer.load(tiny_tokenizer).chat
    assert plain is not None
    template.write_text("{{ strftime_now('%d') }}" + plain.source)
    recipe = sft_recipe(tiny_tokenizer, write_conversations(tmp_path / "data.jsonl", 40), tmp_path)
    model = recipe.model.model_copy(update={"chat_template": str(template)})
    recipe = recipe.model_copy(update={"model": model})
    for day in (18, 19):
        calendar = SimpleNamespace(today=partial(date, 2026, 11, day))
        for module in (parts, session):
            monkeypatch.setattr(module, "date", calendar)
        outcome = run_sft(recipe.model_copy(update={"steps": day - 17}), resume=day == 19)
        assert outcome.finished and recipe.model.template_arguments()["strftime_now"]("%d") == str(day)
    assert read_progress(outcome.checkpoint).day == "2026-11-18"


def test_sft_refuses_other_conversations(tiny_tokenizer: Path, tmp_path: Path) -> None:
    data = write_conversations(tmp_path / "data.jsonl", 40)
    recipe = sft_recipe(tiny_tokenizer, data, tmp_path, steps=1)
    run_sft(recipe)
    more = recipe.model_copy(update={"steps": 2})
    write_conversations(data, 30)
    with pytest.raises(ValueError, match=r"is not what the run began with \(40 conversations.*now 30"):
        run_sft(more, resume=True)
    write_conversations(data, 40)
    assert run_sft(more, resume=True).finished


def test_rl_refuses_another_reference(tiny_checkpoint: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    for file in tiny_checkpoint.iterdir():
        if file.is_file():
            (start / file.name).write_bytes(file.read_bytes())
    recipe = rl_recipe(start, tmp_path, steps=1, loss=Loss(kl_weight=0.1))
    run_rl(recipe)
    more = recipe.model_copy(update={"steps": 2})
    kept = (start / "model.safetensors").read_bytes()
    tensors = load_file(start / "model.safetensors")
    tensors["model.norm.weight"] += 0.01
    save_file(tensors, start / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="is not the model that this run began with"):
        run_rl(more, resume=True)
    (start / "model.safetensors").write_bytes(kept)
    assert run_rl(more, resume=True).finished


# The files of reward functions.


def test_a_changed_reward_file_is_refused_until_it_is_allowed(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """By name and by module; prints at import are in the run's folder, and said once."""
    file = tmp_path / "scores.py"
    text = "print('ready')\ndef score(response, answer): return float(len(response) % 3)\n"
    file.write_text(text)
    reward = Reward(grader=f"{file}:score", workers=1)
    first = run_rl(rl_recipe(tiny_checkpoint, tmp_path, steps=1, reward=reward))
    kept = read_progress(first.checkpoint).rewards
    assert list(kept) == [str(file)] and len(kept[str(file)]) == 16
    assert (first.run / "reward.log").read_text() == "ready\n"

    file.write_text(text + "# another\n")
    longer = rl_recipe(tiny_checkpoint, tmp_path, steps=2, reward=reward)
    with pytest.raises(
        ValueError, match=r"scores.py changed since the run began.*resume RUN --changed-reward"
    ):
        run_rl(longer, resume=True)
    second = run_rl(longer, resume=True, changed_reward=True)
    assert read_progress(second.checkpoint).rewards != kept and read_progress(second.checkpoint).step == 2
    notes = [event["text"] for event in RunDirectory(second.run).read_timeline() if event["what"] == "note"]
    assert notes == [f"from step 2 on with a changed {file}"]


def test_functions_without_a_file_are_known_by_their_source() -> None:
    progress, changed = fingerprint_rewards(Progress(), [lambda response, answer: 1.0], may_change=False)
    assert changed == [] and [*progress.rewards] == ["python:lambda"]
    with pytest.raises(ValueError, match="python:lambda changed since the run began"):
        fingerprint_rewards(progress, [lambda response, answer: 2.0], may_change=False)


def test_the_files_of_an_environment_count_as_those_of_rewards(tmp_path: Path) -> None:
    """Its code, what a command runs, and what is searched; tools that are built in have no file."""
    for name in ("world.py", "tools.py", "agent.py", "server.py", "corpus.jsonl"):
        (tmp_path / name).write_text(f"# {name}\n")
    tools = Environment(
        tools=("search", "calculator", f"{tmp_path}/tools.py:weather"),
        corpus=f"{tmp_path}/corpus.jsonl",
        mcp=(McpServer(command=("python", f"{tmp_path}/server.py")),),
    )
    environments = {
        ("corpus.jsonl", "server.py", "tools.py"): tools,
        ("world.py",): Environment(name=f"{tmp_path}/world.py:World"),
        ("agent.py",): Environment(program=("python", f"{tmp_path}/agent.py", "--fast")),
        ("world.py", ""): Environment(program=f"{tmp_path}/world.py:run"),
        (): Environment(name="openenv:http://host:8000"),
    }
    for names, environment in environments.items():
        files = [str(tmp_path / name) for name in names if name]
        began, _ = fingerprint_rewards(Progress(), [], environment=environment.files, may_change=False)
        assert sorted(began.rewards) == files
        for file in map(Path, files):
            before = file.read_text()
            file.write_text(before + "\n")
            with pytest.raises(ValueError, match=rf"^{file} changed since the run began"):
                fingerprint_rewards(began, [], environment=environment.files, may_change=False)
            _, changed = fingerprint_rewards(began, [], environment=environment.files, may_change=True)
            assert changed == [str(file)]
            file.write_text(before)
