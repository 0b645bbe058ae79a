"""TRL's side of `vs_trl.py`: a folder with request.json in, lines of JSON on stdout out, as soon as they are known.

Runs in the interpreter that has TRL, so nothing here may import foresail. Trainers are made and called as TRL's
documentation says; methods are only wrapped, to take the time.

    python peer.py losses FOLDER    # losses and gradients of one given batch
    python peer.py steps FOLDER     # train, and say how long each part of each step took
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One machine, no network: say so before the libraries look for either.
os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
from datasets import Dataset
from safetensors.torch import save_file
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer  # type: ignore[import-not-found]

VERSIONS = {name: version(name) for name in ("trl", "transformers", "accelerate", "torch")}


def main() -> None:
    command, folder = sys.argv[1], Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text())
    {"losses": answer_losses, "steps": answer_steps}[command](folder, request)


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


# One batch.


def answer_losses(folder: Path, request: dict[str, Any]) -> None:
    """For each setting the loss, TRL's own advantages, and the gradients in NUMBER.safetensors."""
    for number, settings in enumerate(request["settings"]):
        trainer = trainer_of_given_samples(folder, request, settings)
        rows = [{"prompt": str(i), "number": i} for i in range(len(request["rewards"]))]
        inputs = trainer._generate_and_score_completions(rows)
        own_advantages = inputs["advantages"].tolist()
        width = inputs["completion_ids"].shape[1]
        inputs["advantages"] = torch.tensor(request["advantages"])
        inputs["old_per_token_logps"] = pad_rows(request["old_logprobs"], width)
        inputs["ref_per_token_logps"] = pad_rows(request["ref_logprobs"], width)
        trainer.current_gradient_accumulation_steps = 1
        loss = trainer.compute_loss(trainer.model, inputs)
        loss.backward()
        gradients = {name: weight.grad for name, weight in trainer.model.named_parameters()}
        save_file(gradients, folder / f"{number}.safetensors")
        metrics = trainer._metrics["train"]
        clipped = metrics.get("clip_ratio/region_mean") or metrics.get("cispo_clip_ratio") or [0.0]
        say(loss=loss.item(), advantages=own_advantages, clipped=clipped[-1])
    say(versions=VERSIONS)


def trainer_of_given_samples(folder: Path, request: dict[str, Any], settings: dict[str, Any]) -> GRPOTrainer:
    """A trainer whose every rollout is the given one and whose rewards are the given ones."""

    def sample_groups(prompts: list[str], _: GRPOTrainer) -> dict[str, Any]:
        return {"prompt_ids": request["prompts"], "completion_ids": request["completions"], "logprobs": None}

    def reward(completions: list[str], number: list[int], **_: Any) -> list[float]:
        return [request["rewards"][i] for i in number]

    count = len(request["rewards"])
    trainer = GRPOTrainer(
        model=request["checkpoint"],
        reward_funcs=reward,
        rollout_func=sample_groups,
        train_dataset=Dataset.from_list([{"prompt": str(i), "number": i} for i in range(count)]),
        args=GRPOConfig(
            output_dir=str(folder / "trl"),
            per_device_train_batch_size=count,
            num_generations=request["samples_per_prompt"],
            max_completion_length=request["max_new_tokens"],
            temperature=request["temperature"],
            model_init_kwargs={"dtype": "float32"},
            **quiet(on_cpu=True, recompute=False),
            **settings,
        ),
    )
    trainer.model.train()
    return trainer


def pad_rows(rows: list[list[float]], width: int) -> torch.Tensor:
    return torch.tensor([row + [0.0] * (width - len(row)) for row in rows])


def quiet(*, on_cpu: bool, recompute: bool) -> dict[str, Any]:
    """No logging, saving or checking of anything."""
    return {
        "use_cpu": on_cpu,
        "bf16": not on_cpu,
        "gradient_checkpointing": recompute,
        "report_to": "none",
        "logging_strategy": "no",
        "save_strategy": "no",
        "eval_strategy": "no",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": not on_cpu,
    }


# A run.


class Clock:
    """Seconds by part of the step under way; on a GPU each part waits for its own work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.began, self.cpu = self.now(), time.process_time()

    def now(self) -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    def wrap(self, part: str, work: Any) -> Any:
        def timed(*arguments: Any, **named: Any) -> Any:
            start = self.now()
            try:
                return work(*arguments, **named)
            finally:
                self.seconds[part] += self.now() - start

        return timed

    def take(self) -> dict[str, float]:
        """The parts since the last call; what is in none of them is the update."""
        end = self.now()
        total, self.began = end - self.began, end
        cpu, self.cpu = time.process_time() - self.cpu, time.process_time()
        parts, self.seconds = dict(self.seconds), defaultdict(float)
        return {**parts, "update": total - sum(parts.values()), "step": total, "cpu": cpu}


class TimedTrainer(GRPOTrainer):
    """GRPOTrainer with a clock around generation, rewards and the pass for old log-probabilities."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.clock = Clock()
        self.lengths: list[int] = []
        self._generate_single_turn = self.clock.wrap("generate", super()._generate_single_turn)
        self._calculate_rewards = self.clock.wrap("reward", super()._calculate_rewards)
        self._without_gradient = self.clock.wrap("old_logprobs", super()._get_per_token_logps_and_entropies)

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **named: Any) -> Any:
        if torch.is_grad_enabled():
            return super()._get_per_token_logps_and_entropies(*arguments, **named)
        return self._without_gradient(*arguments, **named)

    def _generate_and_score_completions(self, rows: Any) -> Any:
        inputs = super()._generate_and_score_completions(rows)
        self.lengths = inputs["completion_mask"].sum(1).tolist()
        return inputs


class Reporter(TrainerCallback):
    """One line per rollout, when the last of its updates is done."""

    def __init__(self, updates: int, start: float) -> None:
        self.updates, self.start = updates, start
        self.trainer: TimedTrainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.trainer.clock.take()
        self.start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        if state.global_step % self.updates:
            return
        trainer = self.trainer
        seconds = trainer.clock.take()
        rewards = next(iter(trainer._logs["rewards"].values()))
        say(
            step=state.global_step // self.updates,
            elapsed=time.perf_counter() - self.start,
            seconds=seconds,
            reward=sum(rewards) / len(rewards),
            tokens=sum(trainer.lengths),
            peak_gb=peak_gb(),
        )


def peak_gb() -> float | None:
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else None


def answer_steps(folder: Path, request: dict[str, Any]) -> None:
    """Train as asked; with `save`, also leave the end there, so that it can be examined."""
    on_cpu = request["device"] == "cpu"
    samples = request["prompts_per_step"] * request["samples_per_prompt"]
    updates, micro_batches = request["updates_per_step"], request["micro_batches"]
    rows = [json.loads(line) for line in Path(request["data"]).read_text().splitlines()]
    rows = [{**row, "prompt": as_messages(row["prompt"])} for row in rows]
    reporter = Reporter(updates, time.perf_counter())
    trainer = TimedTrainer(
        model=request["checkpoint"],
        reward_funcs=load_function(request["reward"]),
        train_dataset=Dataset.from_list(rows),
        callbacks=[reporter],
        args=GRPOConfig(
            output_dir=str(folder / "trl"),
            seed=request["seed"],
            max_steps=request["steps"] * updates,
            per_device_train_batch_size=samples // (updates * micro_batches),
            gradient_accumulation_steps=micro_batches,
            steps_per_generation=updates * micro_batches,
            num_generations=request["samples_per_prompt"],
            max_completion_length=request["max_new_tokens"],
            temperature=1.0,
            beta=0.0,
            num_iterations=1,
            model_init_kwargs={"dtype": request["dtype"]},
            **quiet(on_cpu=on_cpu, recompute=request["recompute"]),
            **request["settings"],
        ),
    )
    reporter.trainer = trainer
    first = trainer._tokenize_prompts([rows[0]["prompt"]])[0][0]
    say(versions=VERSIONS, prompt_ids=list(first))
    trainer.train()
    if request.get("save"):
        trainer.save_model(request["save"])


def as_messages(prompt: str | list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def load_function(name: str) -> Any:
    """load_function("folder/rewards.py:score"), without the file's folder on the path."""
    file, _, function = name.rpartition(":")
    spec = importlib.util.spec_from_file_location("reward", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)


if __name__ == "__main__":
    main()
