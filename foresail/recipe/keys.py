"""The keys a stage knows, and the one a mistaken key was meant to be."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

LEAST_LIKENESS = 0.6  # of a key that may have been meant

# What the same thing is called in TRL, verl, OpenRLHF and their kin.
ELSEWHERE = {
    "actor_learning_rate": "optimizer.lr",
    "adv_estimator": "advantage.kind",
    "advantage_estimator": "advantage.kind",
    "beta": "loss.kl_weight",
    "bf16": "model.dtype",
    "clip_ratio": "loss.clip_low",
    "clip_ratio_c": "loss.dual_clip",
    "clip_ratio_high": "loss.clip_high",
    "clip_ratio_low": "loss.clip_low",
    "cliprange_value": "critic.clip",
    "critic.model.path": "critic.path",
    "critic.optim.lr": "critic.optimizer.lr",
    "critic_learning_rate": "critic.optimizer.lr",
    "critic_pretrain": "critic.path",
    "critic_warmup": "critic.warmup_steps",
    "custom_reward_function.path": "reward.grader",
    "dataset_name": "data.source",
    "default_local_dir": "run.root",
    "delta": "loss.dual_clip",
    "dynamic_filtering": "dynamic_sampling.enabled",
    "enable_gradient_checkpointing": "recompute",
    "eps_clip": "loss.clip_low",
    "eps_clip_high": "loss.clip_high",
    "epsilon": "loss.clip_low",
    "epsilon_high": "loss.clip_high",
    "eval_steps": "eval_every",
    "experiment_name": "run.name",
    "filter_groups": "dynamic_sampling.enabled",
    "generate_max_len": "sampling.max_new_tokens",
    "grad_clip": "optimizer.clip_norm",
    "gradient_accumulation_steps": "micro_batch_tokens",
    "gradient_checkpointing": "recompute",
    "importance_sampling_level": "loss.kind",
    "init_kl_coef": "loss.kl_weight",
    "kl_coef": "loss.kl_weight",
    "kl_estimator": "loss.kl",
    "kl_loss_coef": "loss.kl_weight",
    "kl_loss_type": "loss.kl",
    "kl_penalty": "loss.kl",
    "learning_rate": "optimizer.lr",
    "lora_alpha": "lora.alpha",
    "lora_r": "lora.rank",
    "lora_rank": "lora.rank",
    "lora_target_modules": "lora.targets",
    "loss_agg_mode": "loss.aggregation",
    "loss_mode": "loss.kind",
    "loss_type": "loss.aggregation",
    "lr_scheduler_type": "optimizer.schedule",
    "lr_warmup_steps": "optimizer.warmup",
    "max_actor_ckpt_to_keep": "checkpoints.keep",
    "max_completion_length": "sampling.max_new_tokens",
    "max_grad_norm": "optimizer.clip_norm",
    "max_num_gen_batches": "dynamic_sampling.max_rounds",
    "max_num_seqs": "engine.max_running",
    "max_prompt_length": "max_prompt_tokens",
    "max_response_length": "sampling.max_new_tokens",
    "max_seq_length": "max_length",
    "max_steps": "steps",
    "micro_train_batch_size": "micro_batch_tokens",
    "model_name_or_path": "model.path",
    "n": "samples_per_prompt",
    "n_samples_per_prompt": "samples_per_prompt",
    "norm_adv_by_std_in_grpo": "advantage.kind",
    "num_episodes": "steps",
    "num_generations": "samples_per_prompt",
    "num_iterations": "passes_per_step",
    "num_ppo_epochs": "passes_per_step",
    "num_train_epochs": "steps",
    "output_dir": "run.root",
    "overlong_buffer.len": "reward.overlong_buffer",
    "overlong_buffer.penalty_factor": "reward.overlong_factor",
    "per_device_train_batch_size": "micro_batch_tokens",
    "peft_config": "lora",
    "ppo_epochs": "passes_per_step",
    "ppo_max_token_len_per_gpu": "micro_batch_tokens",
    "ppo_micro_batch_size_per_gpu": "micro_batch_tokens",
    "ppo_mini_batch_size": "updates_per_step",
    "pretrain": "model.path",
    "project_name": "run.wandb",
    "prompt_data": "data.source",
    "prompt_max_len": "max_prompt_tokens",
    "remote_rm_url": "reward.grader",
    "report_to": "run.wandb",
    "reward_fn": "reward.grader",
    "reward_funcs": "reward.grader",
    "rollout_batch_size": "prompts_per_step",
    "rollout_is_threshold": "loss.importance_cap",
    "run_name": "run.name",
    "save_freq": "checkpoints.every",
    "save_steps": "checkpoints.every",
    "save_total_limit": "checkpoints.keep",
    "scale_rewards": "advantage.kind",
    "target_modules": "lora.targets",
    "test_freq": "eval_every",
    "tis_imp_ratio_cap": "loss.importance_cap",
    "total_epochs": "steps",
    "total_training_steps": "steps",
    "train_batch_size": "prompts_per_step",
    "train_files": "data.source",
    "use_peft": "lora",
    "use_wandb": "run.wandb",
    "val_files": "eval.source",
    "value_clip": "critic.clip",
    "vllm_importance_sampling_cap": "loss.importance_cap",
    "warmup_ratio": "optimizer.warmup",
    "warmup_steps": "optimizer.warmup",
}


def table_type(annotation: Any) -> type[BaseModel] | None:
    """The table behind a field's type, if it is one: `Problems | None` -> Problems, `int` -> None."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    tables = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
    return tables[0] if tables else None


def item_type(annotation: Any) -> type[BaseModel] | None:
    """The table of which a key takes several: `tuple[CurriculumStage, ...]` -> CurriculumStage."""
    return table_type(get_args(annotation)[0]) if get_origin(annotation) is tuple else None


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


def hint(path: str, known: list[str]) -> str:
    """What to say of an unknown key: which one was meant, where that can be told."""
    meant = nearest(path, known)
    return "docs/recipe-keys.md lists all" if meant is None else f"the nearest is {meant}"


def nearest(path: str, known: list[str]) -> str | None:
    """nearest("optimiser.lr", …) -> "optimizer.lr"; nearest("num_generations", …) -> "samples_per_prompt"."""
    for name, ours in ELSEWHERE.items():
        if (path == name or path.endswith("." + name)) and ours in known:
            return ours

    def likeness(candidate: str) -> float:
        """By the whole path, or by the last name: `lr` at the top was meant to be `optimizer.lr`."""
        last = SequenceMatcher(None, path.rpartition(".")[2], candidate.rpartition(".")[2]).ratio()
        whole = SequenceMatcher(None, path, candidate).ratio()
        return max(whole, last) + 0.1 * whole

    best = max(known, key=likeness)
    return best if likeness(best) >= LEAST_LIKENESS else None
