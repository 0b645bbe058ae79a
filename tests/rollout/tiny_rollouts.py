"""A tiny model and requests in groups, for tests of the rollout room."""

from __future__ import annotations

from typing import Any

from foresail.engine.engine import Engine
from foresail.engine.noise import noise_key
from foresail.engine.request import Request
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.plan import SampleSpec

SAMPLES = 3
MAX_TOKENS = 14
STOP = 5
PROMPTS = [tuple(range(1 + group, 6 + 2 * group)) for group in range(4)]


def small_model() -> Decoder:
    shape = ModelShape(
        vocab_size=29, hidden_size=16, intermediate_size=24, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8,
        max_context=64,
    )  # fmt: skip
    return build_model(shape, seed=0)


def small_engine(model: Decoder, *, num_pages: int = 200, **options: Any) -> Engine:
    return Engine(model, num_pages=num_pages, page_size=4, **options)


def specs() -> list[SampleSpec]:
    return [
        SampleSpec(
            id=f"{group}.{sample}",
            group=group,
            sample=sample,
            prompt_tokens=len(prompt),
            max_tokens=MAX_TOKENS,
        )
        for group, prompt in enumerate(PROMPTS)
        for sample in range(SAMPLES)
    ]


def whole_requests() -> dict[str, Request]:
    return {
        spec.id: Request(
            id=spec.id,
            prompt=PROMPTS[spec.group],
            key=noise_key(0, 1, f"problem {spec.group}", spec.sample),
            sampling=Sampling(max_new_tokens=MAX_TOKENS),
            stop_ids=(STOP,),
        )
        for spec in specs()
    }
