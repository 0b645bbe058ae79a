"""Small models and requests that this room's tests share."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Completion, Request
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.model.readouts import logits
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling

VOCABULARY = 31
STOP = 7
TOLERANCE = 1e-5

PLAIN: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "intermediate_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 4,
    "head_dim": 6,
    "max_context": 96,
}
SHAPES = {
    "llama": PLAIN,
    "mistral": PLAIN | {"family": "mistral", "num_kv_heads": 2, "tied": False},
    "qwen2": PLAIN | {"family": "qwen2", "num_kv_heads": 1, "qkv_bias": True},
    "qwen3": PLAIN | {"family": "qwen3", "num_kv_heads": 2, "qk_norm": True, "head_dim": 8, "tied": False},
    "yarn": PLAIN
    | {
        "family": "qwen3",
        "num_kv_heads": 2,
        "qk_norm": True,
        "head_dim": 8,
        "rope_scaling": {"type": "yarn", "factor": 6.0, "original_context": 16, "attention_factor": 1.5},
    },
    "ernie4_5_moe": PLAIN
    | {
        "family": "ernie4_5_moe",
        "experts": {"routed": 9, "active": 3, "inner_size": 16, "shared": 1, "correction": True},
    },
}


@torch.no_grad()
def small_model(name: str = "llama", *, seed: int = 0, **options: Any) -> Decoder:
    """Random weights, biases and norms, with logits spread enough that a wrong key or value shows."""
    model = build_model(ModelShape.model_validate(SHAPES[name]), seed=seed, **options)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator).to(parameter)
        parameter.copy_(1 + 0.3 * noise if parameter.ndim == 1 else noise * parameter.shape[-1] ** -0.5)
    return model


def small_engine(model: Decoder, *, num_pages: int = 400, page_size: int = 4, **options: Any) -> Engine:
    return Engine(model, num_pages=num_pages, page_size=page_size, **options)


class Tally:
    """How many tokens every forward pass of an engine takes."""

    def __init__(self, engine: Engine) -> None:
        self.prefilled: list[int] = []
        self.decoded: list[int] = []
        fill, decode = engine.runner.fill, engine.runner.decode

        def note_fill(chunks):
            self.prefilled.append(sum(len(chunk.tokens) for chunk in chunks))
            fill(chunks)

        def note_decode(block):
            self.decoded.append(block.shape[1])
            return decode(block)

        engine.runner.fill, engine.runner.decode = note_fill, note_decode


def random_prompt(length: int, seed: int = 0) -> tuple[int, ...]:
    numbers = random.Random(f"{seed} {length}")
    return tuple(numbers.randrange(VOCABULARY) for _ in range(length))


def ask(
    name: str,
    prompt: tuple[int, ...],
    *,
    stop_ids: tuple[int, ...] = (STOP,),
    sample: int = 0,
    **sampling: Any,
) -> Request:
    return Request(
        id=name,
        prompt=prompt,
        key=noise_key(0, 0, name, sample),
        sampling=Sampling(**{"max_new_tokens": 20} | sampling),
        stop_ids=stop_ids,
    )


def ask_group(name: str, prompt: tuple[int, ...], count: int, **options: Any) -> list[Request]:
    return [ask(f"{name}.{number}", prompt, **options) for number in range(count)]


def mixed_requests() -> list[Request]:
    """Groups with prompts around the page borders, and single requests with sampling of every kind."""
    groups = [ask_group(f"group {n}", random_prompt(n, n), 3) for n in (1, 3, 4, 5, 8, 11)]
    singles = [
        ask("greedy", random_prompt(6), temperature=0.0),
        ask("hot", random_prompt(6), temperature=2.0, stop_ids=()),
        ask("top p", random_prompt(7), top_p=0.8, max_new_tokens=9),
        ask("top k", random_prompt(9), top_k=5, stop_ids=(1, 2, STOP)),
        ask("min p", random_prompt(13), min_p=0.1, temperature=0.7),
    ]
    return [request for group in groups for request in group] + singles


def finish_all(engine: Engine, requests: Iterable[Request] = ()) -> dict[str, Completion]:
    return {completion.request.id: completion for completion in engine.generate(requests)}


def assert_same(
    found: dict[str, Completion], expected: dict[str, Completion], tolerance: float = TOLERANCE
) -> None:
    """Equal tokens and ends, and log-probabilities up to the rounding of another batch."""
    assert found.keys() == expected.keys()
    for name, completion in expected.items():
        assert found[name].ids == completion.ids, name
        assert found[name].finish == completion.finish, name
        torch.testing.assert_close(
            torch.tensor(found[name].logprobs), torch.tensor(completion.logprobs), rtol=0, atol=tolerance
        )


def assert_all_free(engine: Engine) -> None:
    """Nothing is running, waiting or kept, and every page and slot can be given out exactly once."""
    assert not engine.busy and not engine.pending and not engine.slots
    assert not engine.rows.by_id and not any(engine.rows.count.values())
    assert not engine.admission.filling and not engine.admission.waiting
    assert not engine.admission.prefixes.by_tokens and not engine.admission.prefixes.num_queued
    assert sorted([*engine.pool._free, *engine.pool._idle]) == list(range(engine.num_pages))
    assert set(engine.pool._owners) == {0}
    assert sorted(engine.slots.empty) == list(range(len(engine.table.lengths_S)))


@torch.no_grad()
def full_logits(model: Decoder, ids: Iterable[int]) -> Tensor:
    """Logits after every token, without a cache."""
    ids_T = torch.tensor(list(ids), device=model.device)
    attend = PackedAttention(torch.tensor([0, len(ids_T)], device=model.device))
    positions_T = torch.arange(len(ids_T), device=model.device)
    return model(ids_T, positions_T, attend, logits).value.float()


def full_logprobs(model: Decoder, completion: Completion) -> Tensor:
    """What a plain forward pass over the whole sequence says of the drawn tokens."""
    prompt, ids = completion.request.prompt, completion.ids
    temperature = completion.request.sampling.temperature or 1.0
    logits = full_logits(model, (*prompt, *ids))[len(prompt) - 1 : -1] / temperature
    return torch.log_softmax(logits, -1).cpu().gather(1, torch.tensor(ids)[:, None]).squeeze(1)
