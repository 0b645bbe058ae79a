"""A rollout drawn again: the engine computes everything, and a recorded text says which token comes out.

Requests are known by their noise keys, so nothing else changes: prefill, attention, logits, drawing, verification
of drafts, parking. A drafted token is accepted exactly when the text says the same.

    scripts = read_scripts(trace, tokenizer); dictate(engine, scripts, draw)
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.recipe.tables.parts import Sampling
from foresail.records import Message, Problem
from foresail.rollout.groups import GroupSpec

DATA = Path(__file__).resolve().parents[3] / "shared/data"
SAMPLES = 8  # of each problem
END = 151_645  # Qwen's end of a turn, put behind every response


@dataclass(frozen=True, kw_only=True)
class Script:
    """A problem, and what each of its samples says, as token ids with a stop id last."""

    problem: PromptedProblem
    responses: Sequence[Sequence[int]]


def read_scripts(trace: Path, tokenizer: Tokenizer) -> list[Script]:
    """Rows of a question and responses, as text, or as ids where `record_traces.py` wrote them."""
    if not trace.exists():
        raise SystemExit(f"{trace} is not there; say where with --traces")
    open_trace = gzip.open if trace.suffix == ".gz" else open
    with open_trace(trace, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [read_script(f"p{number}", row, tokenizer) for number, row in enumerate(rows)]


def read_script(name: str, row: dict[str, Any], tokenizer: Tokenizer) -> Script:
    if "response_ids" in row:
        prompt, said = row["prompt_ids"], row["response_ids"]
    else:
        prompt = tokenizer.encode(row["question"]).ids
        said = [tokenizer.encode(response).ids for response in row["responses"]]
    responses = [[*response, END] for response in said]
    problem = Problem(id=name, prompt=(Message(role="user", content=row["question"]),), answer="")
    return Script(problem=PromptedProblem(problem=problem, ids=tuple(prompt)), responses=responses)


def number_densely(scripts: Sequence[Script]) -> tuple[list[Script], list[int]]:
    """The same scripts in the few ids that occur, for a model of few; and which token each id was."""
    used = sorted(
        {token for script in scripts for text in (script.problem.ids, *script.responses) for token in text}
    )
    number = {token: place for place, token in enumerate(used)}
    dense = [
        Script(
            problem=replace(script.problem, ids=tuple(number[token] for token in script.problem.ids)),
            responses=[[number[token] for token in response] for response in script.responses],
        )
        for script in scripts
    ]
    return dense, used


def longest(scripts: Sequence[Script]) -> int:
    return max(len(response) for script in scripts for response in script.responses)


def draw_for(scripts: Sequence[Script]) -> GroupSpec:
    """What to ask for so that every script is drawn to its end."""
    return GroupSpec(
        sampling=Sampling(max_new_tokens=longest(scripts)),
        num_samples=SAMPLES,
        stop_ids=tuple({response[-1] for script in scripts for response in script.responses}),
        seed=0,
        step=1,
    )


def dictate(engine: Engine, scripts: Sequence[Script], group_spec: GroupSpec) -> None:
    """From here on the engine draws what the scripts say, whatever it computes."""
    device, runner = engine.model.device, engine.runner
    if not hasattr(runner, "draw_freely"):
        runner.draw_freely = runner._sample  # type: ignore[attr-defined]
    if isinstance(graphs := getattr(runner, "graphs", None), dict):
        graphs.clear()  # they hold the scripts of before
        # The old pool went with its last graph.
        runner.graph_memory = torch.cuda.graph_pool_handle()  # type: ignore[attr-defined]
    lines = {
        noise_key(group_spec.seed, group_spec.step, script.problem.problem.id, number): [
            *script.problem.ids,
            *response,
        ]
        for script in scripts
        for number, response in enumerate(script.responses)
    }
    keys_N = torch.tensor(sorted(lines), device=device)
    lines_NL = torch.zeros(len(lines), max(map(len, lines.values())) + 1, dtype=torch.int64)
    for line_L, key in zip(lines_NL, sorted(lines), strict=True):
        line_L[: len(lines[key])] = torch.tensor(lines[key])
    lines_NL = lines_NL.to(device)

    def draw_dictated(logits_EV: Tensor, slots_E: Any, positions_E: Tensor) -> tuple[Tensor, Tensor]:
        tokens_E, logprobs_E = runner.draw_freely(  # type: ignore[attr-defined]
            logits_EV, slots_E, positions_E
        )
        keys_E = torch.as_tensor(runner.table.keys_S[slots_E], device=device)  # type: ignore[attr-defined]
        places_E = torch.searchsorted(keys_N, keys_E).clamp(max=len(keys_N) - 1)
        said_E = lines_NL[places_E, (positions_E + 1).clamp(max=lines_NL.shape[1] - 1).long()]
        return said_E.to(tokens_E.dtype), logprobs_E

    runner._sample = draw_dictated  # type: ignore[attr-defined]
