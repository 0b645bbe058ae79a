"""Two sources of drafts: rows get the one that promises more, figures tell of each MTP layer, no token changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ahead_of_the_host import run_ahead
from drafting_fleets import AlwaysDraft, SometimesDraft, drafting, finish
from tiny_rollouts import small_engine, small_model, whole_requests

from foresail.engine.drafts import MAX_DRAFT, Drafts
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.rollout.drafts.pacing import PLAIN, Pacing
from foresail.rollout.drafts.sources import DraftChoice, DraftSources, SourceRecord


@torch.no_grad()
def model_with_mtp() -> Decoder:
    """MTP layers that repeat the decoder without its blocks: right now and then."""
    plain = small_model()
    model = build_model(plain.shape.model_copy(update={"mtp": 2}), seed=1)
    model.load_state_dict(plain.state_dict(), strict=False)
    hidden = model.shape.hidden_size
    for layer in model.mtp:
        layer.join.weight.copy_(torch.cat((torch.zeros(hidden, hidden), torch.eye(hidden)), 1))
        layer.block.load_state_dict(model.blocks[0].state_dict())
    return model


MODEL = model_with_mtp()


@pytest.fixture(scope="module")
def plain() -> dict[str, list[int]]:
    return {c.request.id: list(c.ids) for c in small_engine(MODEL).generate(whole_requests().values())}


def test_no_token_changes_and_figures_tell_of_every_layer(plain: dict[str, list[int]]) -> None:
    instance = drafting("a", AlwaysDraft(), MODEL, mtp=True)
    assert finish([instance]) == plain
    figures = instance.take_figures()
    assert 0 < figures["rollout/mtp_drafts"] < 1
    assert all(0 <= figures[f"rollout/mtp_acceptance_{layer}"] <= 1 for layer in (1, 2))
    assert "rollout/mtp_acceptance_3" not in figures
    assert instance.take_figures() == {}


@pytest.mark.parametrize("seed", range(3))
def test_on_and_off_divided_moved_about_and_ahead_of_the_host(seed: int, plain: dict[str, list[int]]) -> None:
    instances = [
        drafting("a", SometimesDraft(seed), MODEL, max_running=5, num_pages=16, mtp=True),
        drafting("b", AlwaysDraft(), MODEL, max_running=4, num_pages=18, mtp=True),
    ]
    run_ahead(instances[seed % 2].engine)
    assert finish(instances, chunk_tokens=[None, 5, 7][seed]) == plain


@pytest.mark.parametrize("seed", range(2))
def test_steps_that_nobody_reads_before_the_next_change_no_token(
    seed: int, plain: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DraftSources, "only_mtp", lambda *_: True)
    instance = drafting("a", SometimesDraft(seed), MODEL, max_running=5, num_pages=18, mtp=True)
    engine, unread = run_ahead(instance.engine), []
    look = engine.unread_drafts
    engine.unread_drafts = lambda: unread.append(1) or look()
    assert finish([instance], chunk_tokens=[None, 5][seed]) == plain
    assert len(unread) > 5


def test_steps_go_unread_where_mtp_layers_have_the_best_drafts_of_all_rows() -> None:
    sources = DraftSources(small_engine(MODEL, mtp=True))
    few, whole = (Drafts.unread(np.arange(2), size) for size in (1, 2))
    yes = np.array([True, True])
    assert sources.only_mtp(DraftChoice(siblings=few, mtp=whole, by_mtp_R=yes))
    assert not sources.only_mtp(DraftChoice(siblings=few, mtp=few, by_mtp_R=yes))
    assert not sources.only_mtp(DraftChoice(siblings=few, mtp=whole, by_mtp_R=np.array([True, False])))


class NeverDraft(Pacing):
    def lengths(self, num_high, num_low, context):
        return PLAIN


def test_layers_that_are_not_worth_it_are_asked_now_and_then(plain: dict[str, list[int]]) -> None:
    instance = drafting("a", NeverDraft(), MODEL, max_running=1, mtp=True)
    asked = []
    ask = instance.engine.ask_for_drafts
    instance.engine.ask_for_drafts = lambda wanted: (asked.append(wanted), ask(wanted))
    assert finish([instance]) == plain
    assert 0 < sum(asked) < len(asked) / 4
    assert instance.speculation.sources.seen_K[0] > 0  # compared with what was drawn


def test_a_row_gets_the_draft_of_which_more_will_stand() -> None:
    sources = DraftSources(small_engine(MODEL, mtp=True))
    slots_R, most_R, reuses_R = np.array([0, 1]), np.array([4, 4]), np.array([0, 0])
    own = sources.engine.own_drafts
    own.lengths_S[:2] = sources.engine.table.lengths_S[:2] = 9
    sources.engine.slots.by_slot = dict.fromkeys((0, 1))
    siblings = Drafts(slots_R=slots_R, sizes_R=np.array([3, 3]), tokens_RK=np.zeros((2, MAX_DRAFT), np.int64))
    assert not sources.choose(
        siblings, most_R, reuses_R
    ).by_mtp_R.any()  # nothing known: three tokens before two
    for _ in range(40):
        sources.mtp.note(slots_R, np.array([2, 2]), np.array([2, 0]))  # row 0 likes its own
        sources.siblings.note(slots_R, np.array([3, 3]), np.array([0, 2]))
    choice = sources.choose(siblings, most_R, reuses_R)
    assert choice.by_mtp_R.tolist() == [True, False]
    assert choice.drafts.sizes_R.tolist() == [2, 3]
    other = sources.choose(
        siblings, most_R, np.array([1, 0])
    )  # another row in slot 0: known by all rows alone
    assert other.by_mtp_R.tolist() == [False, False]


def test_a_record_counts_places_whose_predecessors_were_right() -> None:
    record = SourceRecord(3)
    for _ in range(300):
        record.note(np.array([0, 1]), np.array([3, 1]), np.array([1, 1]))
    assert record.chances_K[:3] == pytest.approx([1.0, 0.0, 0.5], abs=0.02)  # the third was never tried
    assert record.expect(np.array([2]), np.array([3])) == pytest.approx(1.0, abs=0.02)
