"""transformers' own model on the same weights and rows: its loss, its backward pass, PyTorch's fused AdamW.

Weights, gradients and moments are bfloat16, which is its fastest and smallest way; Foresail's keep float32 masters
and sum gradients in float32. Rows go through it as a rectangle, as many at once as the micro-batch has; where that
does not fit the card, half as many. It has no loss on its routers.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf_names import weight_parts
from foresail.recipe.shape.hf_config import config_from_shape

Figures = dict[str, Any]
EXPERT = re.compile(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")


def measure_peer(
    make_model: Callable[[], Decoder],
    ids_BT: Tensor,
    options: argparse.Namespace,
    describe: Callable[[float, float, int], Figures],
) -> Figures:
    """The fastest of its experts' kernels; each that fails is named with why."""
    steps: list[Figures] = []
    failed: dict[str, str] = {}
    for kernel in options.peer_experts:
        try:
            figures = measure_kernel(make_model, ids_BT, options, kernel, describe)
            steps.append({**figures, "experts": kernel})
        except (RuntimeError, ValueError, ImportError) as error:
            failed[kernel] = str(error)[:200]
        gc.collect()
        torch.cuda.empty_cache()
    if not steps:
        raise SystemExit(f"transformers ran with none of its kernels: {failed}")
    best = min(steps, key=lambda figures: figures["seconds"])
    return {**best, "others": [figures for figures in steps if figures is not best], "failed": failed}


def measure_kernel(
    make_model: Callable[[], Decoder],
    ids_BT: Tensor,
    options: argparse.Namespace,
    kernel: str,
    describe: Callable[[float, float, int], Figures],
) -> Figures:
    peer = load_peer(make_model(), kernel, options.peer_attention)
    if options.peer_recompute:
        peer.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(peer.parameters(), lr=1e-6, betas=(0.9, 0.95), fused=True)
    rows = max(1, options.micro_batch // ids_BT.shape[1])
    while True:
        try:
            if ids_BT.is_cuda:
                torch.cuda.reset_peak_memory_stats()
            loss = update(peer, optimizer, ids_BT, rows)
            update(peer, optimizer, ids_BT, rows)
            break
        except torch.cuda.OutOfMemoryError:
            if rows == 1:
                raise
            rows //= 2
        peer.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()
    seconds = min(time_update(peer, optimizer, ids_BT, rows) for _ in range(options.updates))
    peak = torch.cuda.max_memory_allocated() if ids_BT.is_cuda else 0
    return {**describe(loss, seconds, peak), "micro_batch": rows * ids_BT.shape[1]}


@torch.no_grad()
def load_peer(model: Decoder, kernel: str, attention: str) -> Any:
    """Our weights in its modules: of experts it has one tensor a kind, as we do."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = config_from_shape(model.shape, dtype="bfloat16") | {"use_cache": False}
    options = {"experts_implementation": kernel} if model.shape.experts else {}
    with torch.device(model.device):
        peer = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config.pop("model_type"), **config),
            dtype=model.dtype,
            attn_implementation=attention,
            **options,
        )
    theirs, filled = {**dict(peer.named_parameters()), **dict(peer.named_buffers())}, set()
    for part in weight_parts(model.shape):
        ours = part.to_hf(model.get_parameter(part.parameter).narrow(0, part.start, part.sizes[0]))
        name, place = locate(part.hf_name, part.sizes)
        target = theirs[name] if place is None else theirs[name][place]
        target.copy_(ours.view_as(target))
        filled.add(name)
    tied = {"lm_head.weight"} if model.shape.tied else set()
    missing = {name for name, _ in peer.named_parameters()} - filled - tied
    assert not missing, f"weights that were not filled: {sorted(missing)[:5]}"
    peer.train()
    return peer


def locate(hf_name: str, sizes: tuple[int, ...]) -> tuple[str, Any]:
    """Where a tensor of the files stands in the module: of expert 3 the up matrix fills the second half of [3]."""
    if (expert := EXPERT.fullmatch(hf_name)) is None:
        return hf_name.replace(".mlp.moe_statics.", ".mlp.gate.moe_statics."), None
    number, kind, height = int(expert[2]), expert[3], sizes[0]
    if kind == "down":
        return f"{expert[1]}.down_proj", number
    first = height if kind == "up" else 0
    return f"{expert[1]}.gate_up_proj", (number, slice(first, first + height))


def update(peer: Any, optimizer: torch.optim.Optimizer, ids_BT: Tensor, rows: int) -> float:
    """All rows, some at once; the mean loss of their tokens."""
    total = torch.zeros((), device=ids_BT.device)
    for some_RT in ids_BT.split(rows):
        loss = peer(input_ids=some_RT, labels=some_RT).loss * (len(some_RT) / len(ids_BT))
        loss.backward()
        total += loss.detach().float()
    torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0, foreach=True)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(total)


def time_update(peer: Any, optimizer: torch.optim.Optimizer, ids_BT: Tensor, rows: int) -> float:
    if ids_BT.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    update(peer, optimizer, ids_BT, rows)  # it reads the loss, and so waits
    if ids_BT.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start
