"""What TRL's sides of the parts dpo and reward of `vs_trl.py` share.

In the interpreter that has TRL, so nothing here may import foresail. Pairs come as token ids, so that both sides
learn from the same tokens: TRL's own tokenising is left out, all else is TRL's.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peer_reports import StepReporter, say

VERSIONS = {name: version(name) for name in ("trl", "transformers", "accelerate", "torch")}


class GivenPairs:
    """Before one of TRL's trainers: it takes pairs that are tokenised already, in their order."""

    train_dataset: Any

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        return torch.utils.data.SequentialSampler(dataset if dataset is not None else self.train_dataset)


def quiet(folder: Path, *, on_cpu: bool) -> dict[str, Any]:
    """No saving or checking of anything."""
    return {
        "output_dir": str(folder / "trl"),
        "use_cpu": on_cpu,
        "report_to": "none",
        "save_strategy": "no",
        "eval_strategy": "no",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": not on_cpu,
    }


def step_settings(folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Of a run; every step logs its loss."""
    return quiet(folder, on_cpu=request["device"] == "cpu") | {
        "max_length": None,
        "max_steps": request["steps"],
        "per_device_train_batch_size": request["pairs_per_step"] // request["micro_batches"],
        "gradient_accumulation_steps": request["micro_batches"],
        "gradient_checkpointing": request["recompute"],
        "model_init_kwargs": {"dtype": request["weights"]},
        "bf16": request["precision"] == "bfloat16",
        "learning_rate": request["learning_rate"],
        "lr_scheduler_type": "constant",
        "logging_steps": 1,
    }


def train(trainer_type: Any, request: dict[str, Any], **named: Any) -> None:
    """Train the request's checkpoint on its pairs, and say how long each step took."""
    trainer = trainer_type(
        model=request["checkpoint"],
        train_dataset=Dataset.from_list(request["pairs"]),
        callbacks=[StepReporter()],
        **named,
    )
    say(versions=VERSIONS)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    trainer.train()
