"""The tables a recipe is made of; [reward] is in `reward.py`. Each default is stated once, there or here."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from foresail.recipe.checkpoint_path import CheckpointPath
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.inputs import default_name
from foresail.recipe.tables.part import CheckedPart as CheckedPart
from foresail.recipe.tables.part import Part
from foresail.recipe.tables.today import Today
from foresail.recipe.tables.values import (
    Name,
    Options,
    SourceName,
    Targets,
    Texts,
    ThinkingEnd,
    TooLong,
    read_options,
)


class Run(Part):
    """Where the run lives and what it runs on."""

    name: Name = Field("run", description="folder name under `root`")
    root: str = Field("runs", description="folder that holds runs")
    seed: int = Field(0, ge=0, description="seed of all randomness")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: CUDA when there is one")
    deterministic: bool = Field(False, description="make two runs on one machine equal bit for bit; slower")
    wandb: str | None = Field(None, description="Weights & Biases project to log to as well")

    @property
    def folder(self) -> Path:
        return Path(self.root) / self.name


class Model(Part):
    """The model to start from: a checkpoint, or a shape to train from scratch."""

    path: CheckpointPath | None = Field(
        None,
        description="checkpoint to start from: a Hugging Face directory, a run's folder (its best or newest "
        "checkpoint), or OWNER/NAME on the hub",
    )
    shape: ModelShape | None = Field(None, description="train a model of this shape from scratch")
    tokenizer: str | None = Field(None, description="tokenizer directory; default: the one in `path`")
    chat_template: str | None = Field(
        None,
        description="file with a Jinja chat template, or a built-in one with a switch for thinking: hybrid "
        "(ChatML), hybrid-short (tokenizers made by Foresail); default: the tokenizer's",
    )
    template_options: Options = Field(
        (), description='further arguments of the chat template, like ["enable_thinking=false"]'
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="auto: bfloat16 on CUDA; float16 rounds eight times finer, within a smaller range"
    )
    mtp_layers: int | None = Field(
        None, ge=0, description="number of the checkpoint's MTP layers to load; none: all"
    )

    def template_arguments(self, day: str = "") -> dict[str, Any]:
        """Arguments of the chat template besides the conversation; `day`, like 2026-11-18, is its current date."""
        return {"strftime_now": Today(day or date.today().isoformat()), **read_options(self.template_options)}

    def without_mtp(self) -> Model:
        """For a reference model or a critic, which need no drafts."""
        if self.shape is not None:
            return self.model_copy(update={"shape": self.shape.without_mtp()})
        return self.model_copy(update={"mtp_layers": 0})


class Lora(Part):
    """LoRA: low-rank adapters of frozen matrices. Only adapters are trained; saved models have them merged."""

    rank: int = Field(16, gt=0, description="rank of the adapters")
    alpha: float = Field(32.0, gt=0, description="an adapter's output is multiplied by alpha / rank")
    targets: Targets = Field(
        ("attention", "mlp"),
        description="matrices with adapters: attention, mlp, or some of q, k, v, o, gate, up, down",
    )


class Mtp(Part):
    """Multi-token prediction: extra layers that predict further tokens, for drafts in rollouts."""

    weight: float = Field(0.3, ge=0, description="weight of the MTP layers' mean loss beside the main loss")
    final_weight: float | None = Field(
        None, ge=0, description="the weight after `change_at`; none: `weight` throughout"
    )
    change_at: float = Field(0.4, ge=0, le=1, description="share of the run after which final_weight applies")
    train: Literal["all", "mtp", "added", "none"] = Field(
        "all",
        description="all: model and MTP layers; mtp: MTP layers only; added: all MTP layers but the first (after "
        "`foresail mtp extend`), the model frozen; none: MTP layers frozen, only measured",
    )
    detach: bool = Field(False, description="the MTP loss has no gradient into the model, embedding and head")

    @property
    def freezes_model(self) -> bool:
        return self.train in ("mtp", "added")

    def weight_at(self, progress: float) -> float:
        """Mtp(weight=0.3, final_weight=0.1).weight_at(0.5) -> 0.1."""
        later = self.final_weight is not None and progress >= self.change_at
        return self.final_weight if later and self.final_weight is not None else self.weight


# Keys that stages share.
OptionalMtp = Annotated[
    Mtp | None, Field(description="train MTP layers, if the model has some; none: they stay as they are")
]
OptionalLora = Annotated[Lora | None, Field(description="train LoRA adapters only; none: train every weight")]
MicroBatchTokens = Annotated[
    int, Field(gt=0, description="tokens per packed micro-batch, on each of cluster.context ranks")
]
Recompute = Annotated[
    bool,
    Field(
        description="recompute activations in the backward pass (activation checkpointing): less memory, one more "
        "forward pass"
    ),
]


class Problems(Part):
    """Problems with checkable answers."""

    source: str = Field(description="file.jsonl, file.parquet, or a generator such as arithmetic:…")
    name: SourceName | None = Field(
        None, description="name in metrics; default: the file's or generator's name"
    )
    grader: str | None = Field(None, description="grader of this source; default: reward.grader")
    prompt_key: str | None = Field(None, description="column of the prompt; default: the usual names")
    answer_key: str | None = Field(None, description="column of the answer; default: the usual names")
    system: str | None = Field(None, description="system message put before every prompt")
    suffix: str = Field("", description="text put after every user prompt")
    examples: str | None = Field(
        None, description="few-shot examples: file of conversations put before every prompt as turns"
    )
    limit: int | None = Field(None, gt=0, description="use only this many, the first ones")
    too_long: TooLong = Field(
        "error",
        description="prompts longer than max_prompt_tokens. error: refuse to run; drop: leave them out",
    )
    difficulty: str | None = Field(
        None,
        description="file with a difficulty level per problem, as `foresail data grade-difficulty` writes it",
    )
    difficulty_key: str | None = Field(
        None, description="column of the difficulty level, 1 (easy) to 5 (hard)"
    )
    thinking: bool | None = Field(
        None,
        description="value of the chat template's enable_thinking; default: the row's column of that name, else "
        "the template's own default",
    )

    @property
    def label(self) -> str:
        return self.name or default_name(self.source)


class Sampling(Part):
    """How responses are sampled."""

    temperature: float = Field(1.0, ge=0, description="0: greedy")
    top_p: float = Field(
        1.0,
        gt=0,
        le=1,
        description="nucleus sampling: keep the likeliest tokens up to this probability; 1: all",
    )
    top_k: int = Field(0, ge=0, description="sample from so many likeliest tokens; 0: all tokens")
    min_p: float = Field(
        0.0, ge=0, lt=1, description="drop tokens below this share of the likeliest token's probability"
    )
    max_new_tokens: int = Field(1024, gt=0, description="longest response, in tokens")
    stop: Texts = Field((), description="stop strings; the response keeps the token that completes one")
    thinking_budget: int | None = Field(
        None,
        ge=0,
        description="tokens of a turn after which open thinking is closed by inserting thinking_end, which has no "
        "loss; none: no limit",
    )
    thinking_end: ThinkingEnd = Field(
        "\n</think>\n\n", description="text inserted at the thinking budget; must contain </think>"
    )

    @property
    def reads_text(self) -> bool:
        """Whether an engine must know the bytes of tokens."""
        return bool(self.stop) or self.thinking_budget is not None

    @property
    def truncates(self) -> bool:
        """Whether top_p, top_k or min_p truncate the policy's distribution."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0


class Optimizer(Part):
    """AdamW or Muon, and its schedule."""

    name: Literal["adamw", "muon"] = Field(
        "adamw",
        description="muon: orthogonalised momentum for the matrices inside blocks, AdamW for all else",
    )
    lr: float = Field(1e-6, gt=0, description="peak learning rate")
    beta1: float = Field(0.9, ge=0, lt=1, description="decay of the first moment")
    beta2: float = Field(0.95, ge=0, lt=1, description="decay of the second moment")
    eps: float = Field(1e-8, gt=0, description="added to the denominator of the update")
    weight_decay: float = Field(0.0, ge=0, description="decoupled weight decay, on matrices only")
    clip_norm: float = Field(1.0, gt=0, description="gradient norm above which gradients are clipped")
    warmup: int = Field(0, ge=0, description="warm-up: optimiser updates until the peak learning rate")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="learning rate after the warm-up"
    )
    final_share: float = Field(
        0.0, ge=0, le=1, description="learning rate at the last update, as a share of `lr`"
    )
    states: Literal["float32", "8bit"] = Field(
        "float32", description="8bit: a byte per value of each moment; master weights stay float32"
    )
    momentum: float = Field(0.95, ge=0, lt=1, description="muon: momentum")
    matrix_rate: float = Field(
        1.0, gt=0, description="muon: factor on the learning rate of matrices inside blocks"
    )
    embedding_rate: float = Field(
        1.0, gt=0, description="muon: factor on the learning rate of embedding and head"
    )


HELD_OUT_MEAN = "held-out"  # in the place of a metric: the mean over all held-out sets


class Checkpoints(Part):
    """When checkpoints are saved, and which are kept."""

    every: int | None = Field(
        None,
        gt=0,
        description="steps between checkpoints; with 1 a crash loses at most the current step; none: by `minutes` "
        "only",
    )
    minutes: float | None = Field(
        10.0,
        gt=0,
        description="minutes between checkpoints, unless `every` comes earlier; none: by `every` only",
    )
    keep: int = Field(2, gt=0, description="number of newest checkpoints to keep, besides the best one")
    resumable: int = Field(
        2,
        gt=0,
        description="number of newest checkpoints that keep the optimiser's state; older ones have weights only",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="dtype of the saved model; auto: the model's; resuming stays exact",
    )
    best: str | None = Field(
        None,
        description="metric that chooses checkpoints/best; the end of its name is enough; held-out: the mean over "
        "all [eval]",
    )
    best_is: Literal["max", "min"] = Field(
        "max", description="whether the largest or the smallest value is best"
    )
    patience: int | None = Field(
        None,
        gt=0,
        description="early stopping: end the run after this many measurements of `best` without a better one; "
        "none: never",
    )


class Engine(Part):
    """Size and precision of the rollout engine."""

    max_running: int = Field(512, gt=0, description="samples decoded at once")
    page_size: int = Field(16, gt=0, description="tokens per KV page")
    kv_tokens: int | None = Field(
        None, gt=0, description="tokens the KV cache holds; default: enough for all running samples"
    )
    kv_dtype: Literal["model", "fp8"] = Field(
        "model", description="fp8: half the memory, less precise; CUDA only"
    )
    prefill_tokens: int = Field(16_384, gt=0, description="prompt tokens computed between two decode steps")
    batch_invariant: bool = Field(
        False, description="a sample's numbers do not depend on the rest of the batch; slower"
    )
    replay_routing: bool = Field(
        False, description="routing replay: the trainer uses the experts that the engine chose for each token"
    )


class Rollout(Part):
    """Which engine samples, in which order, and how far behind the trainer."""

    backend: Literal["native", "vllm"] = Field(
        "native",
        description="native: Foresail's engine, on the trainer's own weights; vllm: vLLM in a process of its own "
        "(pip install 'foresail[vllm]'), its samples are not reproducible",
    )
    speculation: Literal["none", "ngram", "suffix"] = Field(
        "none",
        description="vLLM's speculative decoding. ngram: drafts from the sample's own text; suffix: from all "
        "samples (package arctic-inference); needs temperature 1 without top_p, top_k and min_p",
    )
    policy: Literal["auto", "context", "fifo", "group"] = Field(
        "auto",
        description="scheduling. context: long groups first, by the length of a probe sample; fifo: launch order; "
        "group: whole groups, undivided; auto: group on one engine, context on several",
    )
    chunk_tokens: int | None = Field(
        None,
        gt=0,
        description="tokens a sample generates before another may take its place; default: all if the cache holds "
        "every sample, else 64",
    )
    drafts: Literal["auto", "on", "off"] = Field(
        "auto",
        description="speculative decoding with drafts from samples of the same group, and from MTP layers if the "
        "model has some, while it saves time; auto: on a GPU, with numba",
    )
    host_gb: float = Field(8.0, ge=0, description="host memory for the KV cache of waiting samples")
    workers: int = Field(
        0,
        ge=0,
        description="engines in processes of their own; 0: one engine, in this process if it is native",
    )
    staleness: int = Field(
        0,
        ge=0,
        le=1,
        description="steps that samples may lag behind the trainer; 1: the next rollout runs during the update, on "
        "the weights before it",
    )


class Advantage(Part):
    """From rewards to advantages."""

    kind: Literal["grpo", "dr_grpo", "rloo", "reinforce++", "reinforce++_baseline", "gdpo", "gae"] = Field(
        "grpo",
        description="advantage estimator. gdpo: each of several rewards is normalised by its own spread in the "
        "group; gae: PPO's, with a [critic]",
    )


class Critic(Part):
    """PPO's critic: a value function that predicts the reward at every token, trained beside the policy."""

    kind: Literal["model", "head"] = Field(
        "model",
        description="model: a model of its own; head: one layer on the policy's hidden states, without a gradient "
        "into the policy",
    )
    path: CheckpointPath | None = Field(
        None, description="checkpoint the critic's own model starts from; default: the policy's"
    )
    gamma: float = Field(1.0, gt=0, le=1, description="discount per token")
    lam: float = Field(
        1.0, ge=0, le=1, description="GAE's lambda; 1: the rewards that came; 0: the next value"
    )
    clip: float | None = Field(
        0.5, gt=0, description="value clipping: largest change of a value in a step; none: no clipping"
    )
    warmup_steps: int = Field(0, ge=0, description="first steps, in which only the critic is trained")
    optimizer: Optimizer = Optimizer(lr=1e-5)
