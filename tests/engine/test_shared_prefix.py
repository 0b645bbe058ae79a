"""Samples of one prompt share its forward pass and its whole pages; what they draw is their own."""

from __future__ import annotations

import torch
from small_engines import (
    Engine,
    ask,
    ask_group,
    assert_all_free,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.cache import PrefillAttention


class Tally:
    """How many tokens every forward pass took."""

    def __init__(self, engine: Engine) -> None:
        self.prefilled: list[int] = []
        self.decoded: list[int] = []
        engine.model.register_forward_pre_hook(self.note)

    def note(self, model, inputs):
        ids_T, _, attend = inputs
        (self.prefilled if isinstance(attend, PrefillAttention) else self.decoded).append(len(ids_T))


def test_a_group_prefills_its_prompt_once():
    engine = small_engine(small_model())
    tally = Tally(engine)
    finish_all(engine, ask_group("a", random_prompt(10), 8, stop_ids=(), max_new_tokens=5))
    assert tally.prefilled == [10]
    assert tally.decoded == [8] * 4  # the first of five tokens comes from the prefill's logits


def test_prompts_of_many_groups_go_through_one_pass():
    engine = small_engine(small_model())
    tally = Tally(engine)
    groups = [ask_group(f"{n}", random_prompt(n), 4, stop_ids=(), max_new_tokens=2) for n in (5, 8, 9)]
    finish_all(engine, [request for group in groups for request in group])
    assert tally.prefilled == [5 + 8 + 9] and tally.decoded == [12]


def test_siblings_that_wait_reuse_the_prompt():
    engine = small_engine(small_model(), max_running=2)
    tally = Tally(engine)
    completions = finish_all(engine, ask_group("a", random_prompt(10), 7, stop_ids=(), max_new_tokens=3))
    assert len(completions) == 7
    assert tally.prefilled == [10]
    assert_all_free(engine)


def test_a_sibling_that_comes_later_joins_those_that_wait():
    engine = small_engine(small_model(), max_running=1)
    tally = Tally(engine)
    first, second, third = ask_group("a", random_prompt(10), 3, stop_ids=(), max_new_tokens=3)
    engine.add(first)
    engine.add(second)
    engine.step()
    engine.add(third)
    finish_all(engine)
    assert tally.prefilled == [10]


def test_a_prompt_nobody_waits_for_gives_its_pages_back():
    engine = small_engine(small_model(), num_pages=20, page_size=4)
    for request in ask_group("a", random_prompt(10), 3, stop_ids=()):
        engine.add(request)
    engine.step()
    assert not engine.prefixes
    assert engine.pool.num_free == 20 - 2 - 3  # two whole pages for all, one half-filled page for each


def test_whole_pages_are_shared_and_the_last_is_copied():
    engine = small_engine(small_model(), page_size=4)
    for request in ask_group("a", random_prompt(10), 3):
        engine.add(request)
    engine.step()
    tables = [row.pages for row in engine.running.values()]
    assert len({tuple(pages[:2]) for pages in tables}) == 1
    assert len({pages[2] for pages in tables}) == 3
    # 10 = 4 + 4 + 2: the third page holds the prompt's last two tokens in every copy.
    copies = engine.cache.keys[:, [pages[2] for pages in tables], :2]
    assert torch.equal(copies[:, 0], copies[:, 1]) and torch.equal(copies[:, 0], copies[:, 2])
    assert copies.abs().sum() > 0


def test_siblings_write_only_into_pages_of_their_own():
    """While some wait, the prompt's pages stay as the prefill left them, and no page has two writers."""
    engine = small_engine(small_model(), page_size=4, max_running=3)
    prompt = random_prompt(10)
    for request in ask_group("a", prompt, 9, stop_ids=(), max_new_tokens=6):
        engine.add(request)
    engine.step()
    pages = engine.prefixes[prompt].pages
    kept = engine.cache.keys[:, pages].clone(), engine.cache.values[:, pages].clone()
    steps = 0
    while prompt in engine.prefixes:
        assert torch.equal(engine.cache.keys[:, pages], kept[0])
        assert torch.equal(engine.cache.values[:, pages], kept[1])
        own = [page for row in engine.running.values() for page in row.pages[2:]]
        assert len(own) == len(set(own)) and not set(own) & set(pages)
        engine.step()
        steps += 1
    assert steps > 5


def test_equal_contexts_by_chance_share_without_harm():
    """One request's prompt is what another has drawn so far; both then draw with their own noise."""
    model = small_model()
    long = ask("long", random_prompt(5), stop_ids=(), max_new_tokens=8)
    drawn = finish_all(small_engine(model), [long])["long"].ids
    short = ask("short", (*long.prompt, *drawn[:3]), stop_ids=(), max_new_tokens=4)
    alone = finish_all(small_engine(model), [short])["short"].ids
    engine = small_engine(model)
    engine.add(long)
    for _ in range(3):
        engine.step()
    engine.weights_changed(1)  # puts the long one back, with the short one's prompt as its context
    together = finish_all(engine, [short])
    assert together["long"].ids == drawn and together["short"].ids == alone
    assert_all_free(engine)
