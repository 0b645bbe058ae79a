"""Prompts in chunks and single steps beyond the original context, by transformers' logits of the whole sequence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_engines import (
    SHAPES,
    TOLERANCE,
    Tally,
    ask,
    ask_group,
    assert_all_free,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)
from transformers import AutoModelForCausalLM

from foresail.model.hf import load_model, save_model

CONTEXT, ORIGINAL = 48, 12
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"factor": 4.0},
    "yarn": {
        "factor": 4.0,
        "original_context": ORIGINAL,
        "mscale": 1.3,
        "mscale_all_dim": 0.5,
        "beta_fast": 8.0,
    },
    "llama3": {"factor": 4.0, "original_context": ORIGINAL, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "dynamic": {"factor": 4.0},
}


@pytest.mark.parametrize(
    ("kind", "family"), [("linear", "qwen2"), ("yarn", "qwen3"), ("llama3", "mistral"), ("dynamic", "llama")]
)
def test_logprobs_are_those_of_transformers_beyond_the_original_context(
    kind: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaling = {"type": kind, **SCALINGS[kind]}
    context = ORIGINAL if kind == "dynamic" else CONTEXT
    monkeypatch.setitem(SHAPES, kind, SHAPES[family] | {"max_context": context, "rope_scaling": scaling})
    save_model(small_model(kind), tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    engine = small_engine(
        load_model(tmp_path, dtype=torch.float32, device="cpu", context=CONTEXT), prefill_tokens=7
    )
    tally = Tally(engine)
    # of full length: there transformers' dynamic base is the one of a model here
    requests = [
        ask(f"{n}", random_prompt(n), stop_ids=(), max_new_tokens=CONTEXT - n) for n in (5, 12, 30, 47)
    ]
    group = ask_group("group", random_prompt(21), 2, stop_ids=(), max_new_tokens=CONTEXT - 21)
    for completion in finish_all(engine, [*requests, *group]).values():
        prompt, ids = completion.request.prompt, completion.ids
        with torch.no_grad():
            logits_TV = theirs(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
        expected = logits_TV.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(completion.logprobs), expected, rtol=0, atol=TOLERANCE)
    assert max(tally.prefilled) <= 7 < len(tally.prefilled)
    assert_all_free(engine)
