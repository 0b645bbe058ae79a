"""TRL's side of the part reward of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out.

Runs in the interpreter that has TRL, so nothing here may import foresail. Pairs come as token ids, so that both
sides learn from the same tokens: TRL's own tokenising is left out, all else is TRL's.

    python peer_reward_model.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One machine, no network: say so before the libraries look for either.
os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
from datasets import Dataset
from peer_reports import StepReporter, say  # type: ignore[import-not-found]
from transformers import AutoTokenizer
from trl import RewardConfig, RewardTrainer  # type: ignore[import-not-found]


class GivenPairs(RewardTrainer):
    """RewardTrainer on pairs that are tokenised already, in their order."""

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        return torch.utils.data.SequentialSampler(dataset if dataset is not None else self.train_dataset)


def main() -> None:
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text())
    on_cpu = request["device"] == "cpu"
    trainer = GivenPairs(
        model=request["checkpoint"],
        processing_class=AutoTokenizer.from_pretrained(request["checkpoint"]),
        train_dataset=Dataset.from_list(request["pairs"]),
        callbacks=[StepReporter()],
        args=RewardConfig(
            output_dir=str(folder / "trl"),
            max_length=None,
            max_steps=request["steps"],
            per_device_train_batch_size=request["pairs_per_step"] // request["micro_batches"],
            gradient_accumulation_steps=request["micro_batches"],
            model_init_kwargs={"dtype": request["dtype"]},
            learning_rate=request["learning_rate"],
            lr_scheduler_type="constant",
            center_rewards_coefficient=request["center"],
            logging_steps=1,
            use_cpu=on_cpu,
            bf16=not on_cpu,
            gradient_checkpointing=request["recompute"],
            report_to="none",
            save_strategy="no",
            eval_strategy="no",
            disable_tqdm=True,
            dataloader_num_workers=0,
            dataloader_pin_memory=not on_cpu,
        ),
    )
    say(versions={name: version(name) for name in ("trl", "transformers", "accelerate", "torch")})
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    trainer.train()


if __name__ == "__main__":
    main()
