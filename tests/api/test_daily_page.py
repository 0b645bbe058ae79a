"""The page docs/daily.md: every line on it runs, after a quickstart."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from tiny_world import MAX_NEW, MAX_PROMPT

import foresail
from foresail.data.made.arithmetic import make_problems

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (.+?) \| `(.+)` \|$", (ROOT / "docs" / "daily.md").read_text(encoding="utf-8"), re.MULTILINE
)
RL = f"""
stage = "rl"
steps = 1
prompts_per_step = 4
samples_per_prompt = 4
max_prompt_tokens = {MAX_PROMPT}
show_samples = 0
model = {{path = "runs/quickstart/sft/checkpoints/step_60", dtype = "float32"}}
data = {{source = "trl.jsonl"}}
sampling = {{max_new_tokens = {MAX_NEW}}}
dynamic_sampling = {{enabled = false}}
run = {{device = "cpu"}}
"""
SFT = """
stage = "sft"
data = "sharegpt.jsonl"
steps = 1
batch_size = 2
max_length = 24
model = {path = "runs/quickstart/sft/checkpoints/step_60", dtype = "float32"}
"""
REWARDS = """
def score(response, answer):
    return float(answer in response)

def trl(completions, answer, **kwargs):
    return [float(a in (c if isinstance(c, str) else c[0]["content"])) for a, c in zip(answer, completions)]

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(ground_truth in solution_str), "length": len(solution_str)}

def reward_func(queries, prompts, labels, **kwargs):
    return {"rewards": [float(label in query) for label, query in zip(labels, queries)]}

def areal(prompt, completions, prompt_ids, completion_ids, answer, **data):
    return float(answer in completions)
"""


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tiny_sft_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quickstart has been, with the files that the page names. Its lines run here, in order."""
    folder = tmp_path_factory.mktemp("daily")
    shutil.copytree(tiny_sft_run, folder / "runs" / "quickstart" / "sft")
    pairs = [(p.prompt[-1].content, p.answer) for p in make_problems(20, seed=3, steps=(2, 2))]
    write(folder / "trl.jsonl", [{"prompt": prompt, "answer": answer} for prompt, answer in pairs])
    write(folder / "own.jsonl", [{"q": prompt, "a": answer} for prompt, answer in pairs])
    verl = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": prompt}],
            "reward_model": {"ground_truth": answer},
        }
        for prompt, answer in pairs
    ]
    write(folder / "verl.jsonl", verl)
    chat = [
        {
            "conversations": [
                {"from": "human", "value": prompt},
                {"from": "gpt", "value": rf"\boxed{{{answer}}}"},
            ]
        }
        for prompt, answer in pairs
    ]
    write(folder / "sharegpt.jsonl", chat)
    (folder / "rl.toml").write_text(RL, encoding="utf-8")
    (folder / "sft.toml").write_text(SFT, encoding="utf-8")
    (folder / "rewards.py").write_text(REWARDS, encoding="utf-8")
    template = json.loads(
        (folder / "runs/quickstart/sft/checkpoints/step_60/tokenizer_config.json").read_text()
    )
    (folder / "own.jinja").write_text(template["chat_template"], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def commands(folder: Path) -> CommandLine:
    return CommandLine(folder)


def test_the_page_has_its_rows() -> None:
    assert len(ROWS) >= 24


@pytest.mark.parametrize(("what", "line"), ROWS, ids=[what for what, _ in ROWS])
def test_a_line_runs(what: str, line: str, commands: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    if line.startswith("foresail."):
        monkeypatch.chdir(commands.folder)
        assert eval(line, {"foresail": foresail}).metrics
        return
    finished = commands.run(*shlex.split(line)[1:])
    if "--push" in line:  # there is nobody to push to: one line says so, and what is exported stays
        assert (finished.code, finished.err.count("\n")) == (1, 1)
        assert (commands.folder / "pushed" / "config.json").is_file()
    else:
        assert finished.code == 0, finished.err
