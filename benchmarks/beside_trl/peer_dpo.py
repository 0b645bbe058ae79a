"""TRL's side of the part dpo of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out.

Runs in the interpreter that has TRL, so nothing here may import foresail.

    python peer_dpo.py losses FOLDER    # losses and gradients of one given batch of pairs
    python peer_dpo.py steps FOLDER     # train, and say how long each step took
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peer_pairs import VERSIONS, GivenPairs, quiet, step_settings, train
from peer_reports import say
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer  # type: ignore[import-not-found]
from trl.experimental.cpo import CPOConfig, CPOTrainer  # type: ignore[import-not-found]


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text())
    {"losses": answer_losses, "steps": answer_steps}[command](folder, request)


class GivenDpoTrainer(GivenPairs, DPOTrainer):
    pass


# One batch.


def answer_losses(folder: Path, request: dict[str, Any]) -> None:
    """For each setting the loss and metrics, and the gradients in NUMBER.safetensors."""
    for number, setting in enumerate(request["settings"]):
        one_by_one = setting.pop("one_by_one", False)
        if setting["loss_type"] == "simpo":
            model, losses, metrics = simpo_losses(folder, request, setting)
        else:
            model, losses, metrics = dpo_losses(folder, request, setting, one_by_one=one_by_one)
        total = sum(losses) / len(losses)
        total.backward()
        gradients = {name: weight.grad for name, weight in model.named_parameters()}
        save_file(gradients, folder / f"{number}.safetensors")
        say(loss=total.item(), metrics=metrics)
    say(versions=VERSIONS)


def dpo_losses(
    folder: Path, request: dict[str, Any], setting: dict[str, Any], *, one_by_one: bool
) -> tuple[Any, list[Any], dict[str, float]]:
    """Of all pairs in one batch, or of each alone."""
    pairs = request["pairs"]
    trainer = GivenDpoTrainer(
        model=request["checkpoint"],
        ref_model=AutoModelForCausalLM.from_pretrained(request["reference"], dtype=torch.float32),
        train_dataset=Dataset.from_list(pairs),
        args=DPOConfig(
            max_length=None,
            per_device_train_batch_size=len(pairs),
            **one_batch(folder),
            **setting,
        ),
    )
    trainer.model.train()
    parts = [[pair] for pair in pairs] if one_by_one else [pairs]
    losses = [trainer.compute_loss(trainer.model, trainer.data_collator(part)) for part in parts]
    metrics = {
        name: sum(values) / len(values)
        for name, values in trainer._metrics["train"].items()
        if name.startswith(("rewards/", "logps/"))
    }
    return trainer.model, losses, metrics


def simpo_losses(
    folder: Path, request: dict[str, Any], setting: dict[str, Any]
) -> tuple[Any, list[Any], dict[str, float]]:
    """SimPO lives in CPOTrainer, without CPO's term that imitates."""
    text = [{"prompt": "1", "chosen": "2", "rejected": "3"}]  # tokenised by TRL, and not used
    trainer = CPOTrainer(
        model=request["checkpoint"],
        train_dataset=Dataset.from_list(text),
        processing_class=AutoTokenizer.from_pretrained(request["checkpoint"]),
        args=CPOConfig(
            cpo_alpha=0.0,
            **one_batch(folder),
            **setting,
        ),
    )
    batch = {}
    for side in ("chosen", "rejected"):
        rows = [(pair["prompt_ids"], pair[f"{side}_ids"]) for pair in request["pairs"]]
        batch[f"{side}_input_ids"] = pad((prompt + answer for prompt, answer in rows), 0)
        batch[f"{side}_attention_mask"] = pad(([1] * len(prompt + answer) for prompt, answer in rows), 0)
        batch[f"{side}_labels"] = pad(([-100] * len(prompt) + answer for prompt, answer in rows), -100)
    trainer.model.train()
    loss, metrics = trainer.get_batch_loss_metrics(trainer.model, batch)
    return trainer.model, [loss], {name: value for name, value in metrics.items() if "rewards/" in name}


def one_batch(folder: Path) -> dict[str, Any]:
    """Settings of a trainer that takes no step: all in float32, on a CPU."""
    return quiet(folder, on_cpu=True) | {
        "bf16": False,
        "gradient_checkpointing": False,
        "model_init_kwargs": {"dtype": "float32"},
        "logging_strategy": "no",
    }


def pad(rows: Iterable[list[int]], value: int) -> torch.Tensor:
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


# A run.


def answer_steps(folder: Path, request: dict[str, Any]) -> None:
    args = DPOConfig(
        **step_settings(folder, request), precompute_ref_log_probs=request["kept"], beta=request["beta"]
    )
    train(GivenDpoTrainer, request, args=args)


if __name__ == "__main__":
    main()
