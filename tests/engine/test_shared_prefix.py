"""Samples of one prompt share its forward pass and its whole pages; what they draw is their own."""

from __future__ import annotations

import torch
from small_engines import (
    Tally,
    ask,
    ask_group,
    assert_all_free,
    assert_same,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)


def test_a_group_prefills_its_prompt_once():
    engine = small_engine(small_model())
    tally = Tally(engine)
    finish_all(engine, ask_group("a", random_prompt(10), 8, stop_ids=(), max_new_tokens=5))
    assert tally.prefilled == [9]  # the last token of the prompt is decoded, by each sample for itself
    assert tally.decoded == [8] * 5


def test_prompts_of_many_groups_go_through_one_pass():
    engine = small_engine(small_model())
    tally = Tally(engine)
    groups = [ask_group(f"{n}", random_prompt(n), 4, stop_ids=(), max_new_tokens=2) for n in (5, 8, 9)]
    finish_all(engine, [request for group in groups for request in group])
    assert tally.prefilled == [4 + 7 + 8] and tally.decoded == [12, 12]


def test_siblings_that_wait_reuse_the_prompt():
    engine = small_engine(small_model(), max_running=2)
    tally = Tally(engine)
    completions = finish_all(engine, ask_group("a", random_prompt(10), 7, stop_ids=(), max_new_tokens=3))
    assert len(completions) == 7
    assert tally.prefilled == [9]
    assert_all_free(engine)


def test_prompts_of_those_that_wait_are_filled_with_others_where_that_pays():
    requests = [ask(f"{n}", random_prompt(10, n), stop_ids=(), max_new_tokens=3) for n in range(6)]
    expected = finish_all(small_engine(small_model()), requests)
    engine = small_engine(small_model(), max_running=1)
    engine.runner.efficient_prefill_tokens = 30
    tally = Tally(engine)
    assert_same(finish_all(engine, requests), expected)
    assert tally.prefilled == [27, 27]
    assert_all_free(engine)


def test_looking_ahead_leaves_half_of_the_free_pages():
    requests = [ask(f"{n}", random_prompt(10, n), stop_ids=(), max_new_tokens=3) for n in range(30)]
    engine = small_engine(small_model(), max_running=1, num_pages=44)
    engine.runner.efficient_prefill_tokens = 1000
    tally = Tally(engine)
    for request in requests:
        engine.add(request)
    engine.step()
    # The first takes 4 pages, and has 3 in the end; of the other 40 half are for those that wait, three each.
    assert tally.prefilled == [9 + 6 * 9] and engine.pool.num_free == 44 - 3 - 6 * 3
    finish_all(engine)
    assert_all_free(engine)


def test_a_sibling_that_comes_when_all_others_run_fills_only_what_is_no_whole_page():
    engine = small_engine(small_model())
    tally = Tally(engine)
    first, second = ask_group("a", random_prompt(10), 2, stop_ids=(), max_new_tokens=3)
    engine.add(first)
    engine.step()
    finish_all(engine, [second])
    assert tally.prefilled == [9, 1]  # pages of four: two are shared, one token stands on the third
    assert_all_free(engine)


def test_a_prompt_kept_for_those_that_wait_makes_way_when_room_is_needed():
    requests = ask_group("a", random_prompt(10), 5, stop_ids=(), max_new_tokens=10)
    expected = finish_all(small_engine(small_model()), requests)
    engine = small_engine(small_model(), num_pages=6, page_size=4)
    assert {n: c.ids for n, c in finish_all(engine, requests).items()} == {
        n: c.ids for n, c in expected.items()
    }
    assert_all_free(engine)


def test_a_next_turn_takes_up_the_pages_of_the_last():
    """What one request drew is the beginning of another's prompt."""
    model = small_model()
    engine = small_engine(model)
    tally = Tally(engine)
    first = finish_all(engine, [ask("a", random_prompt(10), stop_ids=(), max_new_tokens=11)])["a"]
    second = ask("b", (*first.request.prompt, *first.ids, 3, 5), stop_ids=(), max_new_tokens=4)
    found = finish_all(engine, [second])["b"]
    assert tally.prefilled == [9, 22 - 20]  # of 20 cached tokens all five pages are whole
    assert found.ids == finish_all(small_engine(model), [second])["b"].ids
    assert_all_free(engine)


def test_other_prompts_with_the_same_beginning_share_it_in_one_pass():
    model, head = small_model(), random_prompt(9)
    requests = [ask(f"{n}", (*head, *random_prompt(5, n)), stop_ids=()) for n in range(4)]
    engine = small_engine(model)
    tally = Tally(engine)
    found = finish_all(engine, requests)
    assert tally.prefilled == [13 + 3 * (13 - 8)]
    for request in requests:
        assert found[request.id].ids == finish_all(small_engine(model), [request])[request.id].ids


def test_pages_of_the_old_weights_are_not_taken_up():
    engine = small_engine(small_model())
    tally = Tally(engine)
    finish_all(engine, [ask("a", random_prompt(10), max_new_tokens=3)])
    engine.weights_changed(1)
    finish_all(engine, [ask("b", random_prompt(10), max_new_tokens=3)])
    assert tally.prefilled == [9, 9]


def test_cached_pages_make_way_when_room_is_needed():
    engine = small_engine(small_model(), num_pages=12, page_size=4)
    for seed in range(6):
        finish_all(engine, [ask(f"{seed}", random_prompt(20, seed), stop_ids=(), max_new_tokens=8)])
        assert engine.pool.num_free == 12
    assert_all_free(engine)


def test_a_prompt_in_use_by_none_but_its_samples_is_held_once():
    engine = small_engine(small_model(), num_pages=20, page_size=4)
    for request in ask_group("a", random_prompt(10), 3, stop_ids=()):
        engine.add(request)
    engine.step()
    assert not engine.admission.prefixes.by_tokens
    assert engine.pool.num_free == 20 - 2 - 3  # two whole pages for all, one half-filled page for each


def test_whole_pages_are_shared_and_the_last_is_copied():
    engine = small_engine(small_model(), page_size=4)
    for request in ask_group("a", random_prompt(10), 3):
        engine.add(request)
    engine.step()
    tables = [row.pages for row in engine.slots.values()]
    assert len({tuple(pages[:2]) for pages in tables}) == 1
    assert len({pages[2] for pages in tables}) == 3
    # 10 = 4 + 4 + 2: the third page holds the prompt's last two tokens in every copy.
    copies = engine.runner.cache.keys[:, [pages[2] for pages in tables], :2]
    assert torch.equal(copies[:, 0], copies[:, 1]) and torch.equal(copies[:, 0], copies[:, 2])
    assert copies.abs().sum() > 0


def test_siblings_write_only_into_pages_of_their_own():
    """The prompt's whole pages stay as the prefill left them, and no page has two writers."""
    engine = small_engine(small_model(), page_size=4, max_running=3)
    cache = engine.runner.cache
    for request in ask_group("a", random_prompt(10), 9, stop_ids=(), max_new_tokens=6):
        engine.add(request)
    engine.step()
    shared = next(iter(engine.slots.values())).pages[:2]
    kept = cache.keys[:, shared].clone(), cache.values[:, shared].clone()
    steps = 0
    while engine.busy:
        assert torch.equal(cache.keys[:, shared], kept[0]) and torch.equal(cache.values[:, shared], kept[1])
        assert all(row.pages[:2] == shared for row in engine.slots.values())
        own = [page for row in engine.slots.values() for page in row.pages[2:]]
        assert len(own) == len(set(own)) and not set(own) & set(shared)
        engine.step()
        steps += 1
    assert steps > 15


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
