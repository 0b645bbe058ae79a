"""What is asked of vLLM and what is made of its answers, on an engine that only looks like it.

The real one is tried in with_vllm/.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import SIZE, fake_instance, logprob_of, opened, request_of, says
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_rollouts import small_model

from foresail.engine.engine import NotANumber
from foresail.engine.request import Request
from foresail.model.hf import build_model
from foresail.recipe.estimates.engines import engine_share
from foresail.recipe.shape.model_shape import Experts
from foresail.recipe.tables.parts import Engine, Rollout
from foresail.records import RunStopped
from foresail.rollout.build import build_fleet, gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import continue_request
from foresail.rollout.instance import ChunkOrder, EngineFailed, InstanceLost, Report
from foresail.rollout.plan import Dispatch, SampleSpec
from foresail.rollout.requirements import require
from foresail.rollout.vllm.engine import (
    chunk_seed,
    engine_arguments,
    engine_size,
    sampling_options,
)

BACKSTOP = 120.0
SHORT = 0.5  # seconds of patience, where running out of it is what is tried


def spec_of(request: Request, group: int = 0) -> SampleSpec:
    limit = request.sampling.max_new_tokens
    return SampleSpec(
        id=request.id, group=group, sample=0, prompt_tokens=len(request.prompt), max_tokens=limit
    )


def order_of(request: Request, *, group: int = 0, chunk: int | None = None) -> ChunkOrder:
    spec = spec_of(request, group)
    tokens = chunk or spec.max_tokens
    return ChunkOrder(
        dispatch=Dispatch(spec=spec, instance="vllm 0", generated=0, max_tokens=tokens), work=request
    )


def eventually(found: Callable[[], Any]) -> Any:
    """What `found` returns as soon as it is something."""
    deadline = time.monotonic() + BACKSTOP
    while not (result := found()):
        assert time.monotonic() < deadline, "nothing comes"
        time.sleep(0.001)
    return result


def finish(fleet: Fleet) -> dict[str, tuple[int, ...]]:
    ended: dict[str, tuple[int, ...]] = {}

    def done() -> bool:
        ended.update({spec.id: tuple(completion.ids) for spec, completion in fleet.work()})
        return not fleet.busy

    eventually(done)
    return ended


# Requests.


def test_a_request_is_put_in_vllms_words() -> None:
    request = replace(request_of(temperature=0.7, top_p=0.9, top_k=5, min_p=0.1), stop_ids=(4, 5))
    options = sampling_options(request, limit=9, context=3, speculation="none")
    assert options | {"seed": None} == {
        "temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "max_tokens": 9, "stop_token_ids": [4, 5],
        "ignore_eos": True, "seed": None, "logprobs": 0, "detokenize": False,
    }  # fmt: skip
    seeds = {chunk_seed(key, context) for key in range(-20, 20) for context in range(20)}
    assert len(seeds) == 800 and all(0 <= seed < 2**63 for seed in seeds)
    assert sampling_options(request_of(temperature=0), limit=1, context=3, speculation="none")["seed"] is None


def test_a_chunk_is_parked_without_keys_and_values_and_goes_on_from_there() -> None:
    request = request_of()
    whole = says(request.prompt, 12)
    with opened() as (vllm, fake):
        vllm.version = 3
        vllm.submit(order_of(request, group=5, chunk=4))
        assert vllm.load == 1
        (report,) = eventually(vllm.poll)
        assert (report.state, report.event.new_tokens, report.event.finished) == ("parked", 4, False)
        assert report.parked is not None and report.parked.kv is None
        vllm.version = 4
        spec = report.event.spec
        dispatch = Dispatch(spec=spec, instance="vllm 0", generated=4, max_tokens=20)
        vllm.submit(ChunkOrder(dispatch=dispatch, work=report.parked))
        (report,) = eventually(vllm.poll)
        assert (report.state, report.event.generated, report.event.new_tokens) == ("finished", 4, 8)
        completion = report.completion
        assert (completion.finish, list(completion.ids)) == ("length", whole)
        assert list(completion.logprobs) == [logprob_of(token) for token in whole]
        assert list(completion.versions) == [3] * 4 + [4] * 8
        assert vllm.load == 0
    first, second = fake.asked
    assert first["context"] == [1, 2, 3] and second["context"] == [1, 2, 3, *whole[:4]]
    assert first["priority"] == second["priority"] == 5
    assert first["name"] != second["name"] and first["seed"] != second["seed"]
    assert (first["max_tokens"], second["max_tokens"]) == (4, 8)
    assert fake.calls[-1] == "shutdown"


def test_a_stop_id_and_the_end_of_a_stop_string_end_a_request() -> None:
    request = request_of()
    whole = says(request.prompt, 12)
    text = "".join(chr(97 + token % 26) for token in whole[2:5])
    with opened() as (vllm, fake):
        by_id, by_text = replace(request, stop_ids=(whole[6],)), request_of("text", stop=(text,))
        ended = vllm.generate([by_id, by_text])
        assert [done.finish for done in ended] == ["stop", "stop"]
        assert [list(done.ids) for done in ended] == [whole[: whole.index(whole[6]) + 1], whole[:5]]
        assert any(name.startswith("text") for name in fake.aborted)  # vLLM does not know of stop strings
        half = continue_request(replace(ended[1], ids=whole[:4], finish="chunk"))
        (rest,) = vllm.generate([half])  # the string began before this part of it
        assert (rest.finish, list(rest.ids)) == ("stop", whole[4:5])
    with opened(vocabulary=()) as (vllm, _), pytest.raises(ValueError, match="no vocabulary"):
        vllm.submit(order_of(by_text))


def test_what_can_never_run_is_refused_at_once() -> None:
    with opened() as (vllm, fake):
        with pytest.raises(ValueError, match="exceed the model's context of 64"):
            vllm.submit(order_of(request_of(max_new_tokens=SIZE.max_length)))
        assert not fake.asked and not vllm.load


def test_a_log_probability_that_is_no_number_stops_the_run() -> None:
    with opened() as (vllm, fake):
        fake.logprob = lambda _: float("nan")
        vllm.submit(order_of(request_of()))
        with pytest.raises(NotANumber, match="log-probability nan"):
            eventually(vllm.poll)


def test_a_cancelled_request_is_aborted_and_does_not_come_back() -> None:
    with opened() as (vllm, fake):
        fake.silenced = True
        vllm.submit(order_of(request_of("a")))
        vllm.submit(order_of(request_of("b")))
        eventually(lambda: len(fake.asked) == 2)
        vllm.cancel("a")
        vllm.cancel("a")
        assert vllm.load == 1
        fake.silenced = False
        (report,) = eventually(vllm.poll)
        assert report.event.spec.id == "b"
        assert [name.split()[0] for name in fake.aborted] == ["a"]


def test_a_report_of_another_chunk_is_not_taken_for_the_next_ones() -> None:
    """A request that was cancelled and comes again, when the first has ended and nobody has heard of it."""
    with opened() as (vllm, fake):
        vllm.submit(order_of(request_of("a")))
        eventually(lambda: not vllm.ended.empty())
        vllm.cancel("a")
        fake.silenced = True
        again = request_of("a", prompt=(9, 9))
        vllm.submit(order_of(again))
        assert vllm.poll() == [] and vllm.load == 1
        fake.silenced = False
        reports: list[Report] = eventually(vllm.poll)
        assert [list(report.completion.ids) for report in reports] == [says((9, 9), 12)]


# Groups, chunks, deaths.


@settings(max_examples=25)
@given(
    st.integers(1, 9), st.integers(0, 40), st.integers(0, 3), st.booleans(), st.integers(0, 5),
)  # fmt: skip
def test_no_chunk_death_or_cancel_changes_what_is_said(
    chunk: int, death: int, cancelled: int, hold: bool, pause: int
) -> None:
    """Two instances, of which one dies at any moment; a group is cancelled, and some requests get a second turn."""
    requests = {
        f"{group}.{sample}": replace(
            request_of(f"{group}.{sample}", prompt=(group, sample, 2), max_new_tokens=20), stop_ids=(4, 9)
        )
        for group in range(4)
        for sample in range(2)
    }
    instances = [fake_instance(f"{n}") for n in range(2)]
    fleet = gather(instances, Rollout(chunk_tokens=chunk, policy="context"), max_length=64)
    try:
        for group in range(4):
            members = [name for name in requests if name.startswith(f"{group}.")]
            specs = [spec_of(requests[name], group) for name in members]
            fleet.launch(specs, [requests[name] for name in members], hold=hold)
        turns: dict[str, list[tuple[int, ...]]] = {name: [] for name in requests}
        for round_ in range(100_000):
            if round_ == death:
                instances[1].started.engine.errored = True
            if round_ == pause:
                members = [name for name in requests if name.startswith(f"{cancelled}.")]
                fleet.cancel(cancelled, [spec_of(requests[name], cancelled) for name in members])
            for spec, completion in fleet.work():
                turns[spec.id].append(tuple(completion.ids))
                if hold and len(turns[spec.id]) == 1 and completion.finish == "stop":
                    fleet.extend(spec.id, (1,))
                elif hold:
                    fleet.release(spec.id)
            if not fleet.busy and round_ > pause:
                break
            time.sleep(0.0005)
        assert not fleet.busy
        for name, request in requests.items():
            first = tuple(says(request.prompt, 20, (4, 9)))
            expected = [first]
            if hold and len(first) < 19 and first[-1] in (4, 9):
                behind = (*request.prompt, *first, 1)
                expected.append(tuple(says(behind, 19 - len(first), (4, 9))))
            if name.startswith(f"{cancelled}."):
                assert turns[name] == expected[: len(turns[name])]
            else:
                assert turns[name] == expected
    finally:
        fleet.close()
        for instance in instances:
            instance.close()


def test_a_dead_engine_is_a_loss_and_the_last_one_stops_the_run() -> None:
    with opened() as (vllm, fake):
        fleet = gather([vllm], Rollout(), max_length=64)
        fleet.launch([spec_of(request_of())], [request_of()])
        fleet.work()
        fake.errored = True
        with pytest.raises(RunStopped, match="instance vllm 0 is gone: its process ended"):
            finish(fleet)
    with opened() as (vllm, fake):
        fake.errored = True
        for call in (lambda: vllm.submit(order_of(request_of())), lambda: vllm.generate([request_of()])):
            with pytest.raises(InstanceLost):
                call()


def test_an_engine_that_does_not_answer_is_a_loss() -> None:
    with opened(patience=SHORT) as (vllm, fake):

        def ask_and_wait() -> None:
            vllm.submit(order_of(request_of()))
            eventually(vllm.poll)

        fake.silenced = True
        fake.hangs.add("is_sleeping")
        with pytest.raises(InstanceLost, match="it does not answer"):
            ask_and_wait()


# Settings.


def test_the_cache_holds_all_rows_at_full_length_or_what_is_set() -> None:
    shape = small_model().shape
    size = engine_size(Engine(max_running=5), 40, shape, device="cpu")
    assert (size.kv_tokens, size.block, size.max_running, size.max_length) == (5 * 3 * 32, 32, 5, 40)
    half = engine_share(Engine(max_running=5, kv_tokens=640), 2)
    halves = engine_size(half, 400, shape, device="cuda")
    assert (halves.kv_tokens, halves.block, halves.max_running, halves.max_length) == (320, 16, 3, 64)
    options = {"dtype": "float32", "value_bytes": 4, "device": "cpu"}
    plain = engine_arguments(Path("x"), size, shape, speculation="none", **options)
    drafted = engine_arguments(Path("x"), size, shape, speculation="ngram", **options)
    # together they give NaN
    assert (plain["logprobs_mode"], plain["speculative_config"]) == ("processed_logprobs", None)
    assert drafted["logprobs_mode"] == "raw_logprobs" and drafted["speculative_config"]["method"] == "ngram"


def test_what_vllm_cannot_is_refused_by_name() -> None:
    with opened() as (vllm, _):
        with pytest.raises(
            ValueError, match=r"backend 'vllm 0' draws its own noise.*run\.deterministic = false"
        ):
            require([vllm], {"keyed_noise": True})
        with pytest.raises(ValueError, match="checks no drafts"):
            gather([vllm], Rollout(drafts="on"), max_length=64)
    with opened(speculation="ngram") as (vllm, _):
        with pytest.raises(ValueError, match=r'set rollout\.speculation = "none"'):
            vllm.generate([request_of(temperature=0.7)])
        vllm.generate([request_of(temperature=0, top_p=0.5), request_of("b", temperature=1.0)])


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_a_fleet_without_vllm_names_the_extra() -> None:
    with pytest.raises(EngineFailed, match=r"pip install 'foresail\[vllm\]'"):
        build_fleet(small_model(), Engine(max_running=2), Rollout(backend="vllm"), max_length=32)


def test_a_model_with_experts_is_refused_before_vllm_starts() -> None:
    experts = Experts(routed=3, active=1, inner_size=8, correction=True)
    shape = small_model().shape.model_copy(
        update={"family": "ernie4_5_moe", "qkv_bias": False, "qk_norm": False, "experts": experts}
    )
    with pytest.raises(ValueError, match=r'experts .* set rollout\.backend = "native"'):
        build_fleet(build_model(shape, seed=0), Engine(max_running=2), Rollout(backend="vllm"), max_length=32)
