"""transformers' `generate` on the same shape and load, with the log-probability of each token it draws.

It takes minutes where the engine takes seconds, so only the prefill and NEW_TOKENS tokens are timed, and the
rest is reckoned: every later step as long as the median of these. Its steps grow longer with the context in
truth, so this flatters it. Weights are random, as the engine's: only shapes matter for the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from gpu_clock import timed
from gpu_loads import Load, draw_requests
from torch import Tensor

from foresail.recipe.shape.hf_config import config_from_shape
from foresail.recipe.shape.model_shape import ModelShape

NEW_TOKENS = 24


@dataclass(frozen=True, kw_only=True)
class PeerTime:
    """Seconds of the prefill, of one more token, of its log-probabilities; and the batch that fitted."""

    batch: int
    prefill: float
    step: float
    logprobs: float

    def seconds(self, load: Load) -> float:
        """For the whole load: batches one after another, each until its longest row ends."""
        total, longest_first = 0.0, sorted(load.lengths, reverse=True)
        for first in range(0, len(longest_first), self.batch):
            longest = longest_first[first]
            total += self.prefill + (longest - 1) * self.step + longest * self.logprobs
        return total


def load_peer(shape: ModelShape) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = config_from_shape(shape, dtype="bfloat16")
    with torch.device("cuda"):
        peer = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config.pop("model_type"), **config), dtype=torch.bfloat16
        )
    peer.generation_config.eos_token_id = None  # every row runs to its set length
    return peer.eval()


def measure_peer(peer: Any, load: Load, vocab_size: int) -> PeerTime:
    """All rows at once, or as many as fit."""
    prompts = [request.prompt for request in draw_requests(load, vocab_size, number=0)]
    ids_BT = torch.tensor(prompts, device="cuda")
    new_tokens = min(NEW_TOKENS, max(load.lengths))
    generate(peer, ids_BT[:8], new_tokens=2)
    while True:
        try:
            return time_batch(peer, ids_BT, new_tokens)
        except torch.cuda.OutOfMemoryError:
            ids_BT = ids_BT[: len(ids_BT) // 2]
        torch.cuda.empty_cache()


def time_batch(peer: Any, ids_BT: Tensor, new_tokens: int) -> PeerTime:
    start = torch.cuda.Event(enable_timing=True)
    stamps: list[torch.cuda.Event] = []

    def stamp(_ids: Tensor, scores_BV: Tensor) -> Tensor:
        """`generate` calls this once a token, when its scores are there."""
        stamps.append(torch.cuda.Event(enable_timing=True))
        stamps[-1].record()
        return scores_BV

    torch.cuda.synchronize()
    start.record()
    output = generate(peer, ids_BT, new_tokens=new_tokens, processor=stamp)
    _, logprobs = timed(gather_logprobs, output.logits, output.sequences[:, ids_BT.shape[1] :])
    seconds = [start.elapsed_time(event) / 1000 for event in stamps]
    steps = [later - earlier for earlier, later in pairwise(seconds)]
    return PeerTime(
        batch=len(ids_BT),
        prefill=seconds[0],
        step=median(steps) if steps else 0.0,
        logprobs=logprobs / new_tokens,
    )


@torch.inference_mode()
def generate(peer: Any, ids_BT: Tensor, *, new_tokens: int, processor: Any = None) -> Any:
    return peer.generate(
        input_ids=ids_BT,
        attention_mask=torch.ones_like(ids_BT),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        use_cache=True,
        max_new_tokens=new_tokens,
        pad_token_id=0,
        logits_processor=[] if processor is None else [processor],
        return_dict_in_generate=True,
        output_logits=True,
    )


def gather_logprobs(logits: tuple[Tensor, ...], response_BL: Tensor) -> Tensor:
    """Token by token: all at once would not fit."""
    steps = [
        logits_BV.log_softmax(-1).gather(1, ids_B[:, None])
        for logits_BV, ids_B in zip(logits, response_BL.unbind(1), strict=True)
    ]
    return torch.cat(steps, dim=1)
