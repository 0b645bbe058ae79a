"""Drafts change how many tokens a step draws, never which."""

from __future__ import annotations

import random

import numpy as np
import pytest
from small_engines import (
    VOCABULARY,
    Completion,
    Engine,
    ask,
    ask_group,
    assert_all_free,
    assert_same,
    finish_all,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)

from foresail.engine.entries import plan_entries
from foresail.engine.guesses import Guesses
from foresail.engine.request import Draft, Request

MODEL = small_model("qwen3")


def finish_with_drafts(engine: Engine, requests: list[Request], guess) -> tuple[dict[str, Completion], int]:
    """All completions, and how many steps they took; `guess(request, tokens)` is asked before every step."""
    found, steps = {}, 0
    for request in requests:
        engine.add(request)
    while engine.busy:
        drafts = {
            request.id: guess(request, tokens)
            for request in requests
            if (tokens := engine.tokens(request.id)) is not None
        }
        found |= {completion.request.id: completion for completion in engine.step(engine.guess(drafts))}
        steps += 1
    return found, steps


@pytest.fixture(scope="module")
def plain() -> dict[str, Completion]:
    return finish_all(small_engine(MODEL), mixed_requests())


def true_rest(plain: dict[str, Completion], request: Request, tokens: tuple[int, ...]) -> list[int]:
    return plain[request.id].ids[len(tokens) - len(request.prompt) :]


@pytest.mark.parametrize("length", [1, 4, 16])
def test_right_guesses_are_all_taken(length, plain):
    def guess(request, tokens):
        return Draft(tokens=tuple(true_rest(plain, request, tokens)[:length]))

    engine = small_engine(MODEL)
    found, steps = finish_with_drafts(engine, mixed_requests(), guess)
    assert_same(found, plain)
    assert_all_free(engine)
    longest = max(len(completion.ids) for completion in plain.values())
    assert steps == 1 + -(-(longest - 1) // (length + 1))  # the first step admits, without drafts


@pytest.mark.parametrize("seed", range(4))
def test_guesses_of_every_kind_change_no_token(seed, plain):
    """Paths that are right up to some place, and trees of which one branch is right, in a tight cache."""
    numbers = random.Random(seed)

    def guess(request, tokens):
        rest = true_rest(plain, request, tokens)[: numbers.randint(0, 6)]
        if numbers.random() < 0.3:
            rest[numbers.randint(0, 6) :] = [numbers.randrange(VOCABULARY)]
        return with_branches(rest, numbers) if numbers.random() < 0.7 else Draft(tokens=tuple(rest))

    engine = small_engine(MODEL, num_pages=60, max_running=9)
    found, _ = finish_with_drafts(engine, mixed_requests(), guess)
    assert_same(found, plain)
    assert_all_free(engine)


def with_branches(path: list[int], numbers: random.Random) -> Draft:
    """The path as one branch of a tree, its nodes scattered among others."""
    tokens, parents, last = [], [], -1
    for token in path:
        while numbers.random() < 0.5 and len(tokens) < 8:
            parent = numbers.randint(-1, len(tokens) - 1)
            taken = {t for t, p in zip(tokens, parents, strict=True) if p == parent} | {token}
            tokens.append(numbers.choice([t for t in range(VOCABULARY) if t not in taken]))
            parents.append(parent)
        siblings = [
            place for place, parent in enumerate(parents) if parent == last and tokens[place] == token
        ]
        if siblings:
            last = siblings[0]
            continue
        tokens.append(token)
        parents.append(last)
        last = len(tokens) - 1
    return Draft(tokens=tuple(tokens), parents=tuple(parents))


def test_a_runner_without_branches_is_given_paths_only(plain):
    """Trees are left aside, and the rows draw as they would without; paths are taken, however they are written."""

    def as_path(rest):
        return Draft(tokens=tuple(rest), parents=tuple(range(-1, len(rest) - 1)))

    def as_tree(rest):
        wrong = next(token for token in range(VOCABULARY) if token not in rest[:1])
        return Draft(tokens=(*rest, wrong), parents=(*range(-1, len(rest) - 1), -1))

    steps = {}
    for shape in (as_path, as_tree):
        engine = small_engine(MODEL)
        engine.runner.takes_trees = False
        found, steps[shape] = finish_with_drafts(
            engine, mixed_requests(), lambda *args, shape=shape: shape(true_rest(plain, *args)[:4])
        )
        assert_same(found, plain)
    longest = max(len(completion.ids) for completion in plain.values())
    assert steps[as_path] == 1 + -(-(longest - 1) // 5)
    # at the limit a tree is cut down to one guess, which is a path
    assert longest - 1 <= steps[as_tree] <= longest


def test_a_stop_id_inside_a_draft_ends_the_request_there(plain):
    request = next(c.request for c in plain.values() if c.finish == "stop" and len(c.ids) > 3)

    def guess(_, tokens):
        rest = true_rest(plain, request, tokens)
        return Draft(tokens=(*rest, 1, 2)[:16])

    found, _ = finish_with_drafts(small_engine(MODEL), [request], guess)
    assert found[request.id].ids == plain[request.id].ids and found[request.id].finish == "stop"


def test_a_draft_beyond_the_limit_or_for_nobody_is_harmless():
    requests = ask_group("a", random_prompt(5), 2, stop_ids=(), max_new_tokens=4)
    plain = finish_all(small_engine(MODEL), requests)

    def guess(request, tokens):
        return Draft(tokens=(*true_rest(plain, request, tokens), 3, 3, 3, 3))

    found, _ = finish_with_drafts(small_engine(MODEL), requests, guess)
    assert_same(found, plain)
    engine = small_engine(MODEL)
    engine.add(ask("a", random_prompt(5), max_new_tokens=2))
    engine.step(engine.guess({"nobody": Draft(tokens=(1, 2))}))
    engine.step(engine.guess({"a": Draft(tokens=())}))
    assert not engine.busy


def test_entries_of_a_path_and_a_tree():
    """Row 4 has none, row 3 the tree 5 -> 9 and 7 beside 5, row 8 a path: depths, and whom each node sees."""
    guesses = Guesses.of({3: Draft(tokens=(5, 9, 7), parents=(-1, 0, -1)), 8: Draft(tokens=(6, 2))})
    slots, nodes, depths, parents, tokens, sights = plan_entries(np.array([4, 3, 8]), guesses)
    assert slots.tolist() == [4, 3, 3, 3, 3, 8, 8, 8]
    assert nodes.tolist() == [0, 0, 1, 2, 3, 0, 1, 2]
    assert depths.tolist() == [0, 0, 1, 2, 1, 0, 1, 2]
    assert parents.tolist() == [-1, -1, 0, 1, 0, -1, 0, 1]
    assert tokens.tolist() == [0, 0, 5, 9, 7, 0, 6, 2]
    assert sights.tolist() == [1, 1, 0b11, 0b111, 0b1001, 1, 0b11, 0b111]


def test_a_draft_cut_to_a_depth():
    tree, path = Draft(tokens=(5, 9, 7, 4), parents=(-1, 0, -1, 2)), Draft(tokens=(1, 2, 3))
    guesses = Guesses.of({0: tree, 1: tree, 2: path, 3: path})
    cut = guesses.cut(np.array([1, 2, 2, 0]))
    found = [
        list(zip(tokens[:size].tolist(), parents[:size].tolist(), strict=True))
        for size, tokens, parents in zip(cut.sizes_R, cut.tokens_RK, cut.parents_RK, strict=True)
    ]
    whole = [(5, -1), (9, 0), (7, -1), (4, 2)]
    assert found == [[(5, -1), (7, -1)], whole, [(1, -1), (2, 0)], []]
    assert guesses.only(guesses.paths_R).cut(np.array([2, 0])).sizes_R.tolist() == [2, 0]


def test_drafts_at_the_very_end_of_the_context():
    request = ask("a", random_prompt(90), stop_ids=(), max_new_tokens=6)
    plain = finish_all(small_engine(MODEL), [request])

    def guess(_, tokens):
        return Draft(tokens=(*true_rest(plain, request, tokens), *range(16))[:16])

    engine = small_engine(MODEL, num_pages=25)  # just room for the request
    found, _ = finish_with_drafts(engine, [request], guess)
    assert_same(found, plain)
    assert_all_free(engine)


@pytest.mark.parametrize(
    ("tokens", "parents", "message"),
    [
        (tuple(range(17)), None, "17 tokens; the most is 16"),
        ((1, 2), (-1,), "2 tokens and 1 parents"),
        ((1, 2), (0, -1), "every parent comes before its child"),
        ((1, 1), (-1, -1), "guesses 1 twice"),
    ],
)
def test_malformed_drafts_are_refused(tokens, parents, message):
    with pytest.raises(ValueError, match=message):
        Draft(tokens=tokens, parents=parents)
