"""Drafts in a running fleet: the same tokens in fewer steps, and none where they do not pay."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from ahead_of_the_host import run_ahead
from drafting_fleets import MODEL, AlwaysDraft, SometimesDraft, drafting, finish
from tiny_rollouts import small_engine, small_model, specs, whole_requests

from foresail.engine.request import Completion, Request
from foresail.engine.slots import Slots
from foresail.recipe.tables.parts import Sampling
from foresail.rollout.drafts.allocation import Lengths
from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.drafts.pacing import TRIED_STEPS, TRY_AT_LEAST_EVERY, TRY_EVERY, Pacing
from foresail.rollout.drafts.row_drafts import GROUPS_PER_SLOT
from foresail.rollout.drafts.step_clock import StepClock
from foresail.rollout.fleet import Fleet
from foresail.rollout.kv_pool import KVPool
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance
from foresail.rollout.plan import SampleSpec
from foresail.rollout.policies import build_policy


@pytest.fixture(scope="module")
def plain() -> dict[str, list[int]]:
    return {c.request.id: list(c.ids) for c in small_engine(MODEL).generate(whole_requests().values())}


def test_drafts_change_no_token(plain):
    instance = drafting("a", AlwaysDraft())
    assert finish([instance]) == plain
    tally = instance.speculation.tally
    assert tally.accepted > 0 and tally.drafted >= tally.accepted


@pytest.mark.parametrize("seed", range(6))
def test_on_and_off_divided_and_moved_about(seed, plain):
    instances = [
        drafting("a", SometimesDraft(seed), max_running=3, num_pages=40),
        drafting("b", SometimesDraft(seed + 100), max_running=4, num_pages=60),
        NativeInstance("c", small_engine(MODEL, max_running=2)),
    ]
    assert finish(instances, chunk_tokens=[None, 2, 5][seed % 3]) == plain


@pytest.mark.parametrize("seed", range(8))
def test_a_device_ahead_of_the_host_in_a_tight_cache(seed, plain):
    instances = [
        drafting("a", SometimesDraft(seed), max_running=5, num_pages=14),
        drafting("b", AlwaysDraft(), max_running=4, num_pages=18),
    ]
    for instance in instances:
        run_ahead(instance.engine)
    assert finish(instances, chunk_tokens=[2, 5, 7][seed % 3]) == plain
    assert not any(any(instance.engine.rows) for instance in instances)


def listen(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[int]]:
    """What automata are told of each row that they did not know before."""
    told: dict[int, list[int]] = {}
    append_rows = GroupDrafts.append_rows

    def note(drafts, rows_R, before_R, counts_R, tokens_N):
        tokens = iter(list(tokens_N))
        known_R = drafts.known(np.asarray(rows_R))
        for row, before, count, known in zip(rows_R, before_R, counts_R, known_R, strict=True):
            text = [next(tokens) for _ in range(count)]
            told.setdefault(int(row), []).extend(map(int, text[known - before :] if known >= before else []))
        return append_rows(drafts, rows_R, before_R, counts_R, tokens_N)

    monkeypatch.setattr(GroupDrafts, "append_rows", note)
    return told


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_automata_are_told_what_was_drawn_also_by_rows_that_were_preempted(seed, ahead, plain, monkeypatch):
    told, preempt = listen(monkeypatch), Slots._preempt
    times: list[object] = []
    monkeypatch.setattr(Slots, "_preempt", lambda slots, row: (times.append(row), preempt(slots, row)))
    instance = drafting("a", SometimesDraft(seed), max_running=6, num_pages=12)
    if ahead:
        run_ahead(instance.engine)
    assert finish([instance], policy="group") == plain and times
    groups = instance.speculation.row_drafts.drafts.siblings.values()
    texts = {name: told.get(row, []) for group in groups for name, row in group.rows.items()}
    assert sum(map(len, texts.values())) > 20
    assert all(plain[name][: len(text)] == text for name, text in texts.items())  # the rest nobody asked for


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("seed", range(4))
def test_on_a_gpu_that_is_a_step_ahead(seed):
    model = small_model().to("cuda")
    requests = whole_requests().values()
    whole = {c.request.id: list(c.ids) for c in small_engine(model, batch_invariant=True).generate(requests)}
    instances = [
        drafting("a", SometimesDraft(seed), model, batch_invariant=True, max_running=3, num_pages=40),
        drafting("b", SometimesDraft(seed + 100), model, batch_invariant=True, max_running=4, num_pages=60),
    ]
    assert finish(instances, chunk_tokens=[None, 2, 5][seed % 3]) == whole


def test_a_sibling_elsewhere_that_said_the_same_saves_steps(plain):
    steps = []
    for tell in (False, True):
        instance = drafting("a", AlwaysDraft())
        requests, (first, sibling, *_) = whole_requests(), specs()
        instance.speculation.row_drafts.begin(first, requests[first.id].prompt, ())
        instance.engine.add(requests[first.id])
        if tell:
            instance.learn(sibling, plain[first.id])
        while instance.engine.busy:
            instance.step()
        steps.append(instance.speculation.tally.steps)
    assert steps[0] >= len(plain[first.id]) - 1
    assert steps[1] <= 1 + -(-len(plain[first.id]) // 3)


def test_new_weights_forget_all_texts():
    instance = drafting("a", AlwaysDraft())
    finish([instance])
    assert instance.speculation.row_drafts.drafts.siblings
    instance.update_weights(1)
    assert not instance.speculation.row_drafts.drafts.siblings


def test_an_end_that_comes_after_its_request_was_given_up_is_passed_over():
    """It ended in a step under way when the step's groups were withdrawn, and new weights have come since."""
    instance = drafting("a", AlwaysDraft())
    request = whole_requests()["0.0"]
    late = Completion(request=request, ids=[1], logprobs=[-1.0], versions=[0], finish="stop")
    instance.engine.ended.append(late)
    assert instance.poll() == []


# The clock.


def test_the_clock_reads_between_and_beyond_what_it_saw():
    clock = StepClock()
    for _ in range(4):
        clock.record(32, 0, 5.0)
        clock.record(32, 128, 9.0)  # four tokens a row
    assert clock(32, 0, 0) == 5.0
    assert clock(32, 4, 0) == 9.0
    assert clock(32, 2, 0) == 7.0  # half-way between a plain step and that one
    assert clock(32, 9, 0) == 14.0  # on the same line


def test_a_step_with_hardly_a_draft_is_not_taken_for_a_plain_one():
    clock = StepClock()
    for _ in range(4):
        clock.record(64, 0, 5.0)
        clock.record(64, 2, 7.0)
    assert clock(64, 0.03, 0) == 7.0


def test_before_any_draft_was_seen_time_grows_with_the_entries():
    clock = StepClock()
    for _ in range(2):
        clock.record(32, 0, 5.0)
    assert clock(32, 3, 0) == 20.0


def test_steps_that_were_slow_for_reasons_of_their_own_do_not_count():
    clock = StepClock()
    for milliseconds in (
        99.0,
        5.0,
        30.0,
        40.0,
        1.0,
        50.0,
    ):  # the first is left aside, the fastest may be a fluke
        clock.record(16, 0, milliseconds)
    assert clock(16, 0, 0) == 5.0


def test_the_first_step_of_a_size_says_nothing():
    clock = StepClock()
    clock.record(8, 0, 1000.0)
    clock.record(8, 0, 5.0)
    assert clock(8, 0, 0) == 5.0


# An evaluation, whose weights never change, and short answers.


def draw_waves(
    instance: DraftingInstance, waves: int, samples: int, tokens: int, temperature: float = 1.0
) -> dict[str, list[int]]:
    """One group after another."""
    fleet, drawn = Fleet([instance], build_policy("group"), KVPool(10**6), chunk_tokens=None), {}
    for group in range(waves):
        members = [
            SampleSpec(id=f"{group}.{sample}", group=group, sample=sample, prompt_tokens=4, max_tokens=tokens)
            for sample in range(samples)
        ]
        sampling = Sampling(max_new_tokens=tokens, temperature=temperature)
        fleet.launch(
            members,
            [
                Request(
                    id=spec.id, prompt=(1, 2, 3, group % 9), key=100 * group + spec.sample, sampling=sampling
                )
                for spec in members
            ],
        )
        while fleet.busy:
            drawn |= {spec.id: list(completion.ids) for spec, completion in fleet.work()}
    return drawn


def test_an_evaluation_keeps_the_texts_of_a_few_groups_only():
    instance, drafts = drafting("a", AlwaysDraft(), max_running=4), DraftingInstance("b", small_engine(MODEL))
    drafts.ready = lambda: False  # never drafts
    assert draw_waves(instance, 60, 4, 12) == draw_waves(drafts, 60, 4, 12)
    row_drafts, most = instance.speculation.row_drafts, GROUPS_PER_SLOT * 4
    assert len(row_drafts.drafts.siblings) <= most
    assert len(row_drafts.specs) <= 4 * most and len(row_drafts.pending_texts) <= most
    assert row_drafts.known_groups <= row_drafts.drafts.siblings.keys()
    assert instance.speculation.tally.accepted > 0


def test_short_answers_are_compared_before_they_end(monkeypatch):
    """Twelve equal tokens in all siblings: less than from one look to the next."""
    record = StepClock.record
    monkeypatch.setattr(
        StepClock,
        "record",
        lambda clock, batch, drafted, milliseconds: record(clock, batch, drafted, 5 + 0.0005 * drafted),
    )
    instance = drafting("a", Pacing(), max_running=8)
    draw_waves(instance, 40, 8, 12, temperature=0.0)
    tally = instance.speculation.tally
    assert tally.drafted_steps > tally.steps / 5 and tally.accepted > tally.rows


def test_a_pause_is_no_step(monkeypatch):
    """While the trainer works nothing runs here."""
    instance, seen = drafting("a", Pacing(), max_running=4), []
    monkeypatch.setattr(StepClock, "record", lambda clock, *step, milliseconds: seen.append(milliseconds))
    draw_waves(instance, 1, 4, 12)
    instance.update_weights(1)
    instance.speculation.last_return -= 3600.0
    draw_waves(instance, 1, 4, 12)
    assert seen and max(seen) < 1e6


# Whether drafts pay.


def simulate(pacing: Pacing, steps: int, *, chance: float, plain: float, per_token: float) -> list[Lengths]:
    """Rows whose drafted tokens are each right with that chance, on a machine with such steps."""
    numbers, chosen = np.random.default_rng(0), []
    for _ in range(steps):
        lengths = pacing.lengths(0, 32, 100)
        chosen.append(lengths)
        asked = np.full(32, lengths.low or 8)
        right = (numbers.random((32, 8)) < chance).cumprod(1).sum(1)
        pacing.acceptance.record(asked, asked, np.minimum(right, asked))
        pacing.times.record(32, 32 * lengths.low, plain + per_token * 32 * lengths.low)
    return chosen


def test_drafts_are_found_to_pay_where_checking_is_cheap():
    chosen = simulate(Pacing(), 2000, chance=0.8, plain=5.0, per_token=0.005)
    assert not any(any(lengths) for lengths in chosen[: TRY_EVERY - TRIED_STEPS])
    late = chosen[1000:]
    assert sum(any(lengths) for lengths in late) > 0.98 * len(late)
    assert max(lengths.low for lengths in late) >= 4


def test_drafts_stay_off_where_checking_is_dear_or_guesses_are_bad():
    for chance, per_token in ((0.8, 0.3), (0.1, 0.05)):
        chosen = simulate(Pacing(), 4000, chance=chance, plain=5.0, per_token=per_token)
        late = chosen[1000:]
        tries = len(late) // TRY_AT_LEAST_EVERY + 1  # ever more rarely, up to that
        assert sum(any(lengths) for lengths in late) <= tries * TRIED_STEPS


def test_what_would_not_pay_for_nothing_is_not_tried_until_it_would():
    pacing = Pacing()
    assert not any(any(pacing.lengths(0, 32, 100)) for _ in range(200)), "nobody has looked yet"
    chosen = simulate(pacing, 2000, chance=0.01, plain=5.0, per_token=0.005)
    assert not any(any(lengths) for lengths in chosen)
    chosen = simulate(pacing, 200, chance=0.8, plain=5.0, per_token=0.005)
    assert sum(any(lengths) for lengths in chosen) > 100


def test_a_step_has_no_more_entries_than_it_may():
    for batch, longest in ((40, 8), (100, 4), (256, 1), (257, 0), (600, 0)):
        pacing, chosen = Pacing(max_entries=512), set()
        for _ in range(200):
            lengths = pacing.lengths(batch // 2, batch - batch // 2, 100)
            chosen.add(max(lengths))
            pacing.times.record(batch, batch * max(lengths), 5.0)
            pacing.acceptance.record([8] * 4, [8] * 4, [8] * 4)
        assert max(chosen) == longest


def test_nor_when_rows_come_between_two_plans():
    pacing = Pacing(max_entries=64)
    for _ in range(400):
        few = pacing.lengths(0, 4, 100)
        pacing.times.record(4, 4 * few.low, 5.0)
        pacing.acceptance.record([8] * 4, [8] * 4, [8] * 4)
        assert 40 * (1 + max(pacing_for_more(pacing, 40))) <= 64
    assert any(pacing.best)


def pacing_for_more(pacing: Pacing, rows: int) -> Lengths:
    """What it would say if so many rows were there now."""
    return deepcopy(pacing).lengths(0, rows, 100)


def test_the_mind_changes_with_the_text():
    pacing = Pacing()
    simulate(pacing, 1000, chance=0.8, plain=5.0, per_token=0.005)
    assert any(pacing.best)
    simulate(pacing, 600, chance=0.0, plain=5.0, per_token=0.05)
    assert not any(pacing.best)
