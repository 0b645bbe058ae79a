"""TRL's side of the part dpo of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out.

Runs in the interpreter that has TRL, so nothing here may import foresail. Pairs come as token ids, so that both
sides learn from the same tokens: TRL's own tokenising is left out, all else is TRL's.

    python peer_dpo.py losses FOLDER    # losses and gradients of one given batch of pairs
    python peer_dpo.py steps FOLDER     # train, and say how long each step took
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One machine, no network: say so before the libraries look for either.
os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
from datasets import Dataset
from peer_reports import StepReporter, now, say  # type: ignore[import-not-found]
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer  # type: ignore[import-not-found]
from trl.experimental.cpo import CPOConfig, CPOTrainer  # type: ignore[import-not-found]

VERSIONS = {name: version(name) for name in ("trl", "transformers", "accelerate", "torch")}


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text())
    {"losses": answer_losses, "steps": answer_steps}[command](folder, request)


class GivenPairs(DPOTrainer):
    """DPOTrainer on pairs that are tokenised already, in their order."""

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        return torch.utils.data.SequentialSampler(dataset if dataset is not None else self.train_dataset)


def quiet(*, on_cpu: bool, recompute: bool) -> dict[str, Any]:
    """No saving or checking of anything."""
    return {
        "use_cpu": on_cpu,
        "bf16": not on_cpu,
        "gradient_checkpointing": recompute,
        "report_to": "none",
        "save_strategy": "no",
        "eval_strategy": "no",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": not on_cpu,
    }


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
    trainer = GivenPairs(
        model=request["checkpoint"],
        ref_model=AutoModelForCausalLM.from_pretrained(request["reference"], dtype=torch.float32),
        train_dataset=Dataset.from_list(pairs),
        args=DPOConfig(
            output_dir=str(folder / "trl"),
            max_length=None,
            per_device_train_batch_size=len(pairs),
            model_init_kwargs={"dtype": "float32"},
            logging_strategy="no",
            **quiet(on_cpu=True, recompute=False),
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
        processing_class=load_tokenizer(request["checkpoint"]),
        args=CPOConfig(
            output_dir=str(folder / "trl"),
            cpo_alpha=0.0,
            model_init_kwargs={"dtype": "float32"},
            logging_strategy="no",
            **quiet(on_cpu=True, recompute=False),
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


def load_tokenizer(checkpoint: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(checkpoint)


def pad(rows: Iterable[list[int]], value: int) -> torch.Tensor:
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


# A run.


def answer_steps(folder: Path, request: dict[str, Any]) -> None:
    on_cpu = request["device"] == "cpu"
    start = now()
    trainer = GivenPairs(
        model=request["checkpoint"],
        train_dataset=Dataset.from_list(request["pairs"]),
        callbacks=[StepReporter()],
        args=DPOConfig(
            output_dir=str(folder / "trl"),
            max_length=None,
            max_steps=request["steps"],
            per_device_train_batch_size=request["pairs_per_step"] // request["micro_batches"],
            gradient_accumulation_steps=request["micro_batches"],
            precompute_ref_log_probs=request["kept"],
            model_init_kwargs={"dtype": request["dtype"]},
            learning_rate=request["learning_rate"],
            lr_scheduler_type="constant",
            beta=request["beta"],
            logging_steps=1,
            **quiet(on_cpu=on_cpu, recompute=request["recompute"]),
        ),
    )
    say(versions=VERSIONS, preparation=now() - start)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    trainer.train()


if __name__ == "__main__":
    main()
