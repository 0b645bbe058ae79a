"""Backends that can do less: what a recipe cannot go without is refused by name, the rest is worked around."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_rollouts import FakeJudge, group_spec_of, some_problems, tiny_engine

from foresail.engine.request import Completion, Parked
from foresail.recipe.tables.parts import Rollout
from foresail.rollout.build import gather
from foresail.rollout.instance import Capabilities, ChunkOrder
from foresail.rollout.native import NativeInstance
from foresail.rollout.requirements import CHUNK, choose_chunk, require
from foresail.rollout.stream import sample_all

ALL = Capabilities(
    keyed_noise=True, parking=True, drafts=True, memory_lending=True, logprobs=True, forcing=True
)


class Foreign(NativeInstance):
    """An engine with noise of its own that can only take a whole request and tell the tokens at its end."""

    capabilities = Capabilities(
        keyed_noise=False, parking=False, drafts=False, memory_lending=False, logprobs=False
    )

    def __init__(self, name: str, **options: int) -> None:
        super().__init__(name, tiny_engine(**options))
        self.noise = 0

    def submit(self, order: ChunkOrder) -> None:
        assert not isinstance(order.work, Parked), "it cannot go on with anything"
        assert order.dispatch.max_tokens == order.dispatch.spec.max_tokens, "it cannot stop half-way"
        self.noise += 1
        super().submit(replace(order, work=replace(order.work, key=self.noise)))

    def step(self) -> list[Completion]:
        return [replace(done, logprobs=[0.0] * len(done.ids)) for done in super().step()]

    def park(self, request_id: str) -> None:
        return None


def without(capability: str) -> Foreign:
    instance = Foreign("other")
    instance.capabilities = replace(ALL, **{capability: False})
    return instance


@pytest.mark.parametrize(
    ("capability", "advice"),
    [
        ("keyed_noise", r"set run\.deterministic = false"),
        ("logprobs", "use another backend"),
        ("parking", r"leave rollout\.chunk_tokens unset"),
        ("drafts", r'set rollout\.drafts = "auto"'),
        ("forcing", r"remove sampling\.thinking_budget"),
    ],
)
def test_what_is_needed_is_refused_by_name(capability: str, advice: str) -> None:
    instances = [NativeInstance("native", tiny_engine()), without(capability)]
    with pytest.raises(ValueError, match=f"backend 'other' .*{advice}"):
        require(instances, {capability: True})
    require(instances, {capability: False})
    others = {name: True for name in ("keyed_noise", "logprobs", "parking", "drafts") if name != capability}
    require(instances, others)


@pytest.mark.parametrize("settings", [{"chunk_tokens": 4}, {"drafts": "on"}])
def test_settings_that_a_backend_cannot_follow_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match="backend 'foreign'"):
        gather([Foreign("foreign")], Rollout(**settings), max_length=64)


def test_requests_that_cannot_be_parked_run_undivided() -> None:
    tight = {"num_pages": 40, "max_running": 8}
    assert choose_chunk(Rollout(), [NativeInstance("native", tiny_engine(**tight))], 64) == CHUNK
    assert choose_chunk(Rollout(), [Foreign("foreign", **tight)], 64) is None
    fleet = gather([Foreign("foreign", **tight)], Rollout(policy="context"), max_length=64)
    judge = FakeJudge(lambda _: ["correct"] * 4)
    with fleet.at_work():
        groups = [*sample_all(fleet, some_problems(5), group_spec_of(4), judge)]
    assert len(groups) == 5 and not fleet.busy
    assert all(set(sample.logprobs) == {0.0} for group in groups for sample in group.samples)
