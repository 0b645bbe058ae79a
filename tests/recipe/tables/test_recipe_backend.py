"""`rollout.backend`: what a backend cannot follow is told before a model loads."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from foresail.recipe.tables.backend import backend_mistakes, backend_refusals
from foresail.recipe.tables.parts import Engine, Rollout, Run, Sampling


@pytest.mark.parametrize(
    ("rollout", "others", "told"),
    [
        ({"backend": "vllm"}, {"run": Run(name="x", deterministic=True)}, "run.deterministic = false"),
        ({"backend": "vllm", "drafts": "on"}, {}, "rollout.speculation"),
        ({"backend": "vllm"}, {"engine": Engine(batch_invariant=True)}, "engine.batch_invariant"),
        ({"backend": "vllm"}, {"engine": Engine(kv_dtype="fp8")}, "engine.kv_dtype"),
        ({"backend": "vllm"}, {"sampling": Sampling(temperature=0.001)}, "0.01"),
        ({"backend": "vllm", "speculation": "ngram"}, {"sampling": Sampling(top_k=9)}, "log-probabilities"),
        ({"backend": "native", "speculation": "ngram"}, {}, "rollout.drafts"),
    ],
)
def test_recipes_that_a_backend_cannot_follow_are_mistakes(rollout: dict, others: dict, told: str) -> None:
    given_ = {"run": Run(name="x"), "engine": Engine(), "sampling": Sampling()}
    (mistake,) = backend_mistakes(Rollout(**rollout), **given_ | others)
    assert told in mistake
    allowed = {"backend": rollout["backend"]}
    assert not [*backend_mistakes(Rollout(**allowed), **given_)]


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_the_extra_is_named() -> None:
    (refusal,) = backend_refusals(Rollout(backend="vllm"))
    assert "pip install 'foresail[vllm]'" in refusal
