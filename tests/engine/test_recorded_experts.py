"""The experts that the engine records are those that a plain pass over the whole sequence chooses."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from ahead_of_the_host import run_ahead
from small_engines import (
    VOCABULARY,
    Completion,
    ask,
    ask_group,
    finish_all,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.drafts import Draft
from foresail.engine.engine import Engine
from foresail.engine.request import Parked
from foresail.engine.routes import RouteCache
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.readouts import hidden_states
from foresail.model.router import CHOSEN_EXPERTS, ReplayedRoutes
from foresail.rollout.groups import continue_request, merge_side, to_sample

MODEL = small_model("ernie4_5_moe")
LAYERS, ACTIVE = 2, 3


class Listener:
    """A route that keeps what it hears."""

    def __init__(self) -> None:
        self.layers: dict[int, torch.Tensor] = {}

    def __call__(self, layer: int, experts_TA: torch.Tensor) -> torch.Tensor:
        self.layers[layer] = experts_TA
        return experts_TA


@torch.no_grad()
def chosen(model: Decoder, ids: tuple[int, ...]) -> np.ndarray:
    listener, ids_T = Listener(), torch.tensor(ids)
    attend = PackedAttention(torch.tensor([0, len(ids)]))
    model(ids_T, torch.arange(len(ids)), attend, hidden_states, listener)
    return torch.cat([listener.layers[layer] for layer in range(LAYERS)], 1).numpy()


def assert_chosen(completion: Completion, filled: int, model: Decoder = MODEL) -> None:
    """Of the first `filled` tokens, which were not decoded, nothing need be known of the last layer."""
    ids = (*completion.request.prompt, *completion.ids)
    *found, last = completion.side[CHOSEN_EXPERTS]
    assert last is None and len(found) == len(ids) - 1
    expected, recorded = chosen(model, ids)[:-1], np.stack(found)
    assert recorded.dtype == np.int16
    unknown = recorded[:, -ACTIVE:] == -1
    assert not unknown[filled:].any(), "every token that was decoded has all its layers"
    assert (recorded[:, :-ACTIVE] == expected[:, :-ACTIVE]).all()
    assert (unknown | (recorded[:, -ACTIVE:] == expected[:, -ACTIVE:])).all()


def recording(model: Decoder = MODEL, **options: object) -> Engine:
    return small_engine(model, replay_routing=True, **options)


def true_draft(plain: Completion, tokens: tuple[int, ...], numbers: random.Random) -> Draft:
    """Right up to some place, then anything."""
    rest = plain.ids[len(tokens) - len(plain.request.prompt) :][: numbers.randint(0, 5)]
    return Draft(tokens=(*rest, *[numbers.randrange(VOCABULARY) for _ in range(numbers.randint(0, 3))]))


@pytest.fixture(scope="module")
def plain() -> dict[str, Completion]:
    return finish_all(recording(), mixed_requests())


def test_recording_changes_no_token(plain: dict[str, Completion]) -> None:
    without = finish_all(small_engine(MODEL), mixed_requests())
    for name, completion in without.items():
        assert plain[name].ids == completion.ids and not completion.side
        assert_chosen(plain[name], filled=len(completion.request.prompt) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_chunks_drafts_parking_and_a_tight_cache_lose_none(seed: int, plain: dict[str, Completion]) -> None:
    """Two engines, between which requests wander, with their keys and values or without; one is ahead of the host,
    as on a GPU.
    """
    numbers = random.Random(seed)
    engines = [
        recording(num_pages=numbers.randint(14, 40), max_running=6, prefill_tokens=numbers.randint(3, 30))
        for _ in range(2)
    ]
    device = run_ahead(engines[1]).runner
    device.cache.routes = RouteCache(MODEL.shape, engines[1].num_pages, engines[1].page_size, MODEL.device)
    requests = numbers.sample(mixed_requests(), 9)
    for request in requests:
        engines[0].add(request, chunk_tokens=numbers.randint(1, 9))
    found: dict[str, Completion] = {}
    while any(engine.busy for engine in engines):
        for place, engine in enumerate(engines):
            if not engine.busy:
                continue
            drafts = {
                request.id: true_draft(plain[request.id], tokens, numbers)
                for request in requests
                if numbers.random() < 0.4 and (tokens := engine.tokens(request.id)) is not None
            }
            for completion in engine.step(engine.drafts_by_slot(drafts) if drafts else None):
                if completion.finish != "chunk":
                    found[completion.request.id] = completion
                    continue
                if numbers.random() < 0.2:
                    assert_chosen(completion, filled=len(completion.request.prompt) - 1)
                more = numbers.randint(1, 9)
                if numbers.random() < 0.5:
                    engine.go_on(completion.request.id, chunk_tokens=more)
                    continue
                parked = engine.park(completion.request.id)
                assert parked is not None
                kept = parked if numbers.random() < 0.6 else parked.without_kv()
                engines[numbers.choice((place, 1 - place))].resume(kept, chunk_tokens=more)
    assert found.keys() == {request.id for request in requests}
    for name, completion in found.items():
        assert completion.ids == plain[name].ids
        assert_chosen(completion, filled=len(completion.request.prompt) - 1)


def test_a_prefix_that_others_left_in_the_cache_brings_its_experts() -> None:
    """Siblings share pages, and a second turn finds those of the first one, which were decoded there."""
    engine, prompt = recording(), random_prompt(11)
    first = finish_all(engine, ask_group("group", prompt, 3, stop_ids=(), max_new_tokens=9))
    turns = {
        name: replace(continue_request(done, (3, 5)), sampling=done.request.sampling)
        for name, done in first.items()
    }
    second = finish_all(engine, turns.values())
    for name, done in second.items():
        assert_chosen(done, filled=len(done.request.prompt) - 1)
        sample = to_sample(first[name], done)
        rows = sample.side[CHOSEN_EXPERTS]
        assert len(rows) == len(sample.ids) and rows[-1] is None
        expected = chosen(MODEL, tuple(sample.ids))
        for place, in_loss in enumerate(sample.loss_mask[1:]):
            if in_loss:  # what predicts a token with a loss was decoded, and all of it is known
                assert rows[place].tolist() == expected[place].tolist()


def test_tokens_keep_the_experts_of_the_weights_that_drew_them() -> None:
    model = small_model("ernie4_5_moe")
    engine = recording(model)
    request = ask("a", random_prompt(9), stop_ids=(), max_new_tokens=14)
    engine.add(request)
    for _ in range(6):
        engine.step()
    drawn = len(engine.tokens("a") or ()) - 1
    ids = engine.tokens("a") or ()
    before = chosen(model, ids)[:drawn]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(-0.7)
    engine.weights_changed(1)
    (done,) = finish_all(engine).values()
    found = np.stack(done.side[CHOSEN_EXPERTS][:-1])
    known = found[:drawn] >= 0
    assert (found[:drawn] == before)[known].all() and known[8:].all()
    after = chosen(model, (*done.request.prompt, *done.ids))[drawn:-1]
    assert (found[drawn:] == after).all() and not (before == chosen(model, ids)[:drawn]).all()


def test_what_leaves_an_engine_half_way_takes_them_along() -> None:
    engine = recording()
    engine.add(ask("a", random_prompt(9), stop_ids=(), max_new_tokens=14))
    for _ in range(5):
        engine.step()
    parked = engine.park("a")
    assert isinstance(parked, Parked) and len(parked.side[CHOSEN_EXPERTS]) == 9 + len(parked.ids)
    engine.resume(parked.without_kv())
    cancelled = engine.cancel("a")
    assert cancelled is not None and [*map(str, cancelled.side[CHOSEN_EXPERTS])] == [
        *map(str, parked.side[CHOSEN_EXPERTS])
    ]


def test_keys_and_values_from_the_host_bring_them_to_a_longer_request() -> None:
    """As when an episode's next turn goes on elsewhere: of what was decoded before, all layers are known."""
    engine, other = recording(), recording()
    engine.add(ask("a", random_prompt(9), stop_ids=(), max_new_tokens=20), chunk_tokens=7)
    while not (ended := engine.step()):
        pass
    parked = engine.park("a")
    assert ended[0].finish == "chunk" and parked is not None and parked.kv is not None
    longer = continue_request(parked, (3, 5, 1))
    other.resume(replace(parked, request=longer, ids=[], logprobs=[], versions=[], side={}))
    (done,) = finish_all(other).values()
    assert_chosen(done, filled=len(longer.prompt) - 1)
    known = [(row >= 0).all() for row in done.side[CHOSEN_EXPERTS][:-1]]
    decoded = range(
        8, 15
    )  # the prompt's last token, and six of the seven that were drawn: the last was filled in
    assert [place for place in range(18) if known[place]] == [*decoded]


def test_a_dense_model_has_nothing_to_record() -> None:
    with pytest.raises(ValueError, match="this llama model is dense; set it to false"):
        recording(small_model("llama"))


def test_what_was_known_first_stands() -> None:
    assert merge_side([1, None], [8, 3, 5], 4) == [1, 8, 3, 5]
    assert merge_side([1, 2], [], 3) == [1, 2, None]
    assert merge_side([], [4], 3) == [None, None, 4]


def test_a_replayed_choice_stands_and_an_unknown_one_is_the_routers_own() -> None:
    ids_T, own = torch.tensor(random_prompt(6)), Listener()
    attend = PackedAttention(torch.tensor([0, 6]))
    with torch.no_grad():
        MODEL(ids_T, torch.arange(6), attend, hidden_states, own)
        others_TLA = torch.stack([(own.layers[layer] + 1) % 9 for layer in range(LAYERS)], 1)
        others_TLA[2, 1] = -1
        replayed = ReplayedRoutes(others_TLA.short(), 0)
        plain_TD = MODEL(ids_T, torch.arange(6), attend, hidden_states).value
        other_TD = MODEL(ids_T, torch.arange(6), attend, hidden_states, replayed).value
    for layer in range(LAYERS):
        found = replayed(layer, own.layers[layer])
        assert torch.equal(
            found, torch.where(others_TLA[:, layer] < 0, own.layers[layer], others_TLA[:, layer])
        )
    assert not torch.isclose(plain_TD, other_TD).all(1).any()
