"""The keys a stage knows, and the one a mistaken key was meant to be."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

# What the same thing is called in TRL, verl, OpenRLHF and their kin.
ELSEWHERE = {
    "adv_estimator": "advantage.kind",
    "clip_ratio_high": "loss.clip_high",
    "clip_ratio_low": "loss.clip_low",
    "epsilon": "loss.clip_low",
    "epsilon_high": "loss.clip_high",
    "filter_groups": "dynamic_sampling.enabled",
    "kl_coef": "loss.kl_weight",
    "kl_loss_coef": "loss.kl_weight",
    "learning_rate": "optimizer.lr",
    "loss_agg_mode": "loss.aggregation",
    "max_completion_length": "sampling.max_new_tokens",
    "max_grad_norm": "optimizer.clip_norm",
    "max_prompt_length": "max_prompt_tokens",
    "max_response_length": "sampling.max_new_tokens",
    "max_steps": "steps",
    "num_generations": "samples_per_prompt",
    "output_dir": "run.root",
    "ppo_mini_batch_size": "updates_per_step",
    "rollout.n": "samples_per_prompt",
    "save_steps": "checkpoints.every",
    "train_batch_size": "prompts_per_step",
    "warmup_steps": "optimizer.warmup",
}


def table_type(annotation: Any) -> type[BaseModel] | None:
    """The table behind a field's type, if it is one: `Problems | None` -> Problems, `int` -> None."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    tables = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
    return tables[0] if tables else None


def known_keys(table: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and types of all keys below a table, tables themselves included."""
    for name, field in table.model_fields.items():
        yield prefix + name, field.annotation
        if (inner := table_type(field.annotation)) is not None:
            yield from known_keys(inner, f"{prefix}{name}.")


def leaves(given: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """leaves({"run": {"seed": 1}, "steps": 2}) -> ("run.seed", 1), ("steps", 2)."""
    for name, value in given.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def nearest(path: str, known: list[str]) -> str:
    """nearest("optimiser.lr", …) -> "optimizer.lr"; nearest("num_generations", …) -> "samples_per_prompt"."""
    for name, ours in ELSEWHERE.items():
        if (path == name or path.endswith("." + name)) and ours in known:
            return ours

    def likeness(candidate: str) -> float:
        """By the whole path, or by the last name: `lr` at the top was meant to be `optimizer.lr`."""
        last = SequenceMatcher(None, path.rpartition(".")[2], candidate.rpartition(".")[2]).ratio()
        whole = SequenceMatcher(None, path, candidate).ratio()
        return max(whole, last) + 0.1 * whole

    return max(known, key=likeness)
