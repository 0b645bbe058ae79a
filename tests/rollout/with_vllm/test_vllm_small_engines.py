"""Real engines with settings of their own: one row, speculation, a death."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import replace

import psutil
import pytest
from real_vllm import (
    LLAMA,
    furthest,
    model_of,
    native,
    order,
    requests,
    scored,
    vllm_of,
    wait_until,
)

from foresail.rollout.instance import EngineFailed, InstanceLost


def test_groups_launched_first_run_first_ctrl_c_is_the_trainers_and_a_death_is_a_loss() -> None:
    """With one row: while the first runs, a late group is queued before an early one, and overtaken by it."""
    with vllm_of(model_of(LLAMA), max_running=1) as vllm:
        running, late, early = (
            replace(one, id=f"{n}") for n, one in enumerate(requests(3, max_new_tokens=40))
        )
        vllm.submit(order(vllm, running, group=0))
        vllm.submit(order(vllm, late, group=9))
        vllm.submit(order(vllm, early, group=1))
        reports = wait_until(vllm, lambda reports: len(reports) == 3)
        assert [report.event.spec.group for report in reports] == [0, 1, 9]

        everyone = psutil.Process().children(recursive=True)
        children = [child for child in everyone if "resource_tracker" not in " ".join(child.cmdline())]
        for child in children:
            os.kill(child.pid, signal.SIGINT)  # Ctrl-C reaches all; the trainer finishes its step first
        (done,) = vllm.generate([running])
        assert len(done.ids) == 40
        vllm.submit(order(vllm, running))
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(InstanceLost):
            wait_until(vllm, lambda reports: False)


@pytest.mark.parametrize("speculation", ["ngram", "suffix"])
def test_speculation_changes_no_greedy_token_and_log_probabilities_stay_right(speculation: str) -> None:
    if speculation == "suffix":
        pytest.importorskip("arctic_inference", reason="suffix speculation needs arctic-inference")
    model = model_of(LLAMA)
    with vllm_of(model, speculation=speculation) as vllm:
        again = [
            replace(one, prompt=one.prompt * 2) for one in requests(3, max_new_tokens=40)
        ]  # much to copy
        expected = native(model, again)
        for done in vllm.generate(again):
            assert tuple(done.ids) == tuple(expected[done.request.id].ids)
            assert furthest(done, expected[done.request.id]) < 1e-4
        for done in vllm.generate(requests(3, temperature=1.0, max_new_tokens=40)):
            assert all(map(math.isfinite, done.logprobs))
            assert max(abs(a - b) for a, b in zip(done.logprobs, scored(model, done), strict=True)) < 1e-4
        with pytest.raises(EngineFailed, match=r'rollout\.speculation = "none"'):
            vllm.generate(requests(1, temperature=0.7))
