"""A real vLLM draws what the native engine draws, with its log-probabilities, under the weights it was given."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from real_vllm import (
    LLAMA,
    LONGEST,
    QWEN3,
    become,
    finish,
    furthest,
    model_of,
    native,
    order,
    requests,
    scored,
    spec_of,
    vllm_of,
    wait_until,
)

from foresail.engine.request import Completion, Request
from foresail.model.decoder import Decoder
from foresail.recipe.tables.parts import Rollout
from foresail.rollout.build import gather
from foresail.rollout.groups import continue_request
from foresail.rollout.remote.instance import RemoteInstance
from foresail.rollout.weights.buckets import Content
from foresail.rollout.weights.sync import HandedOver, WeightsDiffer

A, B = 0, 1  # seeds of weights


@pytest.fixture(scope="module", params=[LLAMA, QWEN3], ids=["llama, tied", "qwen3"])
def model(request: pytest.FixtureRequest) -> Decoder:
    return model_of(request.param)


@pytest.fixture(scope="module")
def vllm(model: Decoder) -> Iterator[RemoteInstance]:
    """One engine for all tests of this file: starting takes half a minute. Each finds and leaves weights A."""
    with vllm_of(model) as instance:
        yield instance


def same_as_native(vllm: RemoteInstance, model: Decoder, wanted: list[Request]) -> list[Completion]:
    drawn = vllm.generate(wanted)
    expected = native(model, wanted)
    for done in drawn:
        ours = expected[done.request.id]
        assert tuple(done.ids) == tuple(ours.ids)
        assert done.finish == ours.finish
        assert furthest(done, ours) < 1e-4
    return [*drawn]


def test_greedy_tokens_and_their_log_probabilities_are_the_native_engines(vllm, model) -> None:
    drawn = same_as_native(vllm, model, requests(5))
    assert {done.finish for done in drawn} == {"length"}
    assert all(set(done.versions) == {0} for done in drawn)


def test_stop_ids_and_stop_strings_end_with_the_same_token(vllm, model) -> None:
    whole = {done.request.id: done.ids for done in vllm.generate(requests(4))}
    by_id = [replace(one, stop_ids=(whole[one.id][5],)) for one in requests(4)]
    assert {done.finish for done in same_as_native(vllm, model, by_id)} == {"stop"}
    letters = [chr(97 + token % 26) for token in whole["2.0"]]
    by_text = [
        replace(one, sampling=one.sampling.model_copy(update={"stop": ("".join(letters[3:6]),)}))
        for one in requests(4)
    ]
    found = {done.request.id: done for done in same_as_native(vllm, model, by_text)}
    assert found["2.0"].finish == "stop" and len(found["2.0"].ids) <= 6


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 1.0},
        {"temperature": 0.7},
        {"temperature": 1.3, "top_p": 0.7},
        {"top_k": 5},
        {"min_p": 0.2},
    ],
)
def test_log_probabilities_are_those_of_the_sampling_distribution(vllm, model, sampling: dict) -> None:
    """What vLLM drew is scored by the native engine's own function, on the model's logits."""
    drawn = vllm.generate(requests(4, **{"temperature": 1.0} | sampling))
    for done in drawn:
        assert all(map(math.isfinite, done.logprobs))
        assert max(abs(a - b) for a, b in zip(done.logprobs, scored(model, done), strict=True)) < 1e-4
    assert len({done.ids for done in drawn}) > 1


def test_the_same_seed_draws_the_same_tokens_and_another_key_others(vllm) -> None:
    wanted = requests(3, temperature=1.0)
    once, again = vllm.generate(wanted), vllm.generate(wanted)
    assert [done.ids for done in once] == [done.ids for done in again]
    others = vllm.generate([replace(one, key=one.key + 1) for one in wanted])
    assert [done.ids for done in once] != [done.ids for done in others]


def test_weights_go_from_a_to_b_and_back_and_no_stale_prefix_shows(vllm, model) -> None:
    """The prompts are the same each time: keys and values of other weights would change what follows them."""
    first, second = model_of(model.shape, A), model_of(model.shape, B)
    wanted = requests(5)
    before = same_as_native(vllm, model, wanted)
    try:
        become(model, second)
        vllm.update_weights(1)
        changed = same_as_native(vllm, model, wanted)
        assert [done.ids for done in changed] != [done.ids for done in before]
        assert {version for done in changed for version in done.versions} == {1}
    finally:
        become(model, first)
        vllm.update_weights(2)
    after = same_as_native(vllm, model, wanted)
    assert [done.ids for done in after] == [done.ids for done in before]
    assert max(map(furthest, after, before)) < 1e-6


def test_every_tensor_that_changes_is_sent_with_its_layer_and_proved(vllm, model) -> None:
    """One number of one tensor at a time, drawn at random."""
    numbers = random.Random(0)
    parameters = dict(model.named_parameters())
    for name in numbers.sample(sorted(parameters), 4):
        values = parameters[name].data.view(-1)
        place = numbers.randrange(len(values))
        kept = values[place].clone()
        values[place] = torch.nextafter(kept, torch.tensor(9.0))
        vllm.weights.take_figures()
        try:
            vllm.update_weights(3)
            assert vllm.weights.take_figures()["perf/weight_sync_gb"] == parameters[name].nbytes / 1e9
            same_as_native(vllm, model, requests(2))
        finally:
            values[place] = kept
            vllm.update_weights(3)


class Corrupting(HandedOver):
    """Changes a bit on the way."""

    def pack(self, content: Content, slot: int) -> HandedOver:
        octets = [(piece, octets.clone()) for piece, octets in content]
        octets[0][1][7] ^= 1
        return HandedOver(octets)


def test_weights_that_did_not_arrive_stop_the_run(vllm, model) -> None:
    """Every tensor in turn would do; the last norm is one that vLLM does not pack."""
    with torch.no_grad():
        model.norm.weight.mul_(1.25)
    vllm.weights.transport = Corrupting()
    try:
        with pytest.raises(WeightsDiffer, match=r"model\.norm\.weight has checksum .* version 7"):
            vllm.update_weights(7)
    finally:
        vllm.weights.transport = HandedOver()
        become(model, model_of(model.shape, A))
        vllm.update_weights(8)
    same_as_native(vllm, model, requests(2))


@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks_say_what_an_undivided_request_says(vllm, model, chunk: int) -> None:
    fleet = gather([vllm], Rollout(chunk_tokens=chunk), max_length=LONGEST)
    wanted = requests(5)
    fleet.launch([spec_of(one, 0) for one in wanted], wanted)
    ended, expected = finish(fleet), native(model, wanted)
    assert {name: tuple(done.ids) for name, done in ended.items()} == {
        name: tuple(done.ids) for name, done in expected.items()
    }
    assert max(furthest(ended[name], expected[name]) for name in ended) < 1e-4


def test_an_episode_comes_back_with_more_prompt(vllm, model) -> None:
    fleet = gather([vllm], Rollout(), max_length=LONGEST)
    wanted = requests(3, max_new_tokens=40)
    first = {name: done.ids[4] for name, done in native(model, wanted).items()}
    wanted = [replace(one, stop_ids=(first[one.id],)) for one in wanted]
    fleet.launch([spec_of(one, 0) for one in wanted], wanted, hold=True)
    turns: dict[str, list[Completion]] = {one.id: [] for one in wanted}
    while any(len(of_one) < 2 for of_one in turns.values()):
        for spec, completion in fleet.work():
            turns[spec.id].append(completion)
            if len(turns[spec.id]) == 1:
                fleet.extend(spec.id, (5, 6, 7))
            else:
                fleet.release(spec.id)
    for one in wanted:
        (before,) = native(model, [one]).values()
        (after,) = native(model, [continue_request(before, (5, 6, 7))]).values()
        assert [tuple(turn.ids) for turn in turns[one.id]] == [tuple(before.ids), tuple(after.ids)]
        assert furthest(turns[one.id][1], after) < 1e-4


def test_what_is_cancelled_does_not_come_back_and_frees_its_place(vllm) -> None:
    long, other = requests(2, max_new_tokens=60)
    vllm.submit(order(vllm, long))
    vllm.submit(order(vllm, other))
    vllm.cancel(long.id)
    vllm.cancel(long.id)
    reports = wait_until(vllm, lambda reports: bool(reports))
    assert [report.event.spec.id for report in reports] == [other.id]
    assert vllm.load == 0
    vllm.update_weights(9)  # which waits until nobody holds a page
    vllm.submit(order(vllm, long))
    again = wait_until(vllm, lambda reports: bool(reports))
    assert [report.event.spec.id for report in again] == [long.id]
