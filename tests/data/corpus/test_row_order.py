"""The order of a corpus: every document once an epoch, packed, and a pure function of the place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from small_corpora import id_at, write_corpus

from foresail.data.corpus import windows
from foresail.data.corpus.batches import count_targets, pack_rows, row_batches
from foresail.data.corpus.best_fit import Stretch, best_fit
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.draw import CorpusSupply, draw_rows
from foresail.data.corpus.permutation import permute
from foresail.data.corpus.windows import CorpusPlace, PackedRow, Windows

CPU = torch.device("cpu")


@given(count=some.integers(1, 3000), key=some.tuples(some.integers(), some.text(max_size=4)))
def test_an_order_has_every_place_once(count: int, key: tuple[int, str]) -> None:
    found = permute(np.arange(count), count, *key)
    assert sorted(found.tolist()) == list(range(count))
    some_places = np.arange(count)[:: max(1, count // 7)]
    assert permute(some_places, count, *key).tolist() == found[some_places].tolist()


def test_orders_differ_by_key_and_look_random() -> None:
    count = 4096
    first, second = permute(np.arange(count), count, 0), permute(np.arange(count), count, 1)
    assert (first == second).mean() < 0.01
    for order in (first, second):
        assert abs(np.corrcoef(np.arange(count), order)[0, 1]) < 0.06
        assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.06
    assert permute(np.array([0, 2**40 - 1]), 2**40, 0).max() < 2**40


@given(lengths=some.lists(some.integers(1, 70), min_size=1, max_size=60), room=some.integers(1, 40))
def test_best_fit_loses_no_token_and_fills_no_row_too_far(lengths: list[int], room: int) -> None:
    rows = best_fit(lengths, room)
    assert all(0 < sum(s.stop - s.start for s in row) <= room for row in rows)
    places = Counter((s.document, t) for row in rows for s in row for t in range(s.start, s.stop))
    assert places == Counter((d, t) for d, length in enumerate(lengths) for t in range(length))
    assert all(s.stop - s.start == room for row in rows for s in row if s.stop < lengths[s.document])
    # no two rows would fit into one, so at most one is less than half full
    sizes = sorted(sum(s.stop - s.start for s in row) for row in rows)
    assert len(sizes) < 2 or sizes[0] + sizes[1] > room


def test_best_fit_takes_the_fullest_row_that_fits() -> None:
    rows = best_fit([10, 3, 4, 2], room=6)
    assert rows == [
        [Stretch(0, 0, 6)],
        [Stretch(0, 6, 10), Stretch(3, 0, 2)],
        [Stretch(2, 0, 4)],
        [Stretch(1, 0, 3)],
    ]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    folder, numbers = tmp_path_factory.mktemp("corpora"), np.random.default_rng(0)
    lengths = {"a": numbers.integers(1, 60, 150), "b": numbers.integers(1, 12, 90), "c": [5] * 7}
    return {name: write_corpus(folder / name, list(each)) for name, each in lengths.items()}


def supply(
    corpora: dict[str, Corpus], name: str, weight: float = 1.0, epochs: int | None = None
) -> CorpusSupply:
    return CorpusSupply(windows=Windows(name, corpora[name], length=32, seed=3), weight=weight, epochs=epochs)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty documents each, so that an epoch has several."""
    monkeypatch.setattr(windows, "LEAST_DOCUMENTS", 40)
    monkeypatch.setattr(windows, "LEAST_ROWS", 1)


@pytest.mark.usefixtures("small_windows")
def test_an_epoch_has_every_token_of_every_document_once(corpora: dict[str, Corpus]) -> None:
    corpus, of_a = corpora["a"], supply(corpora, "a", epochs=2)
    rows, places = draw_rows([of_a], {}, first=0, count=10_000)
    tokens = Counter((s.document, t) for row in rows for s in row.stretches for t in range(s.start, s.stop))
    assert set(tokens.values()) == {2} and len(tokens) == corpus.num_tokens
    assert places["a"] == CorpusPlace(2 * corpus.num_documents, 0) and of_a.epochs_done(places["a"]) == 2
    halves = [[row.stretches for row in half] for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :])]
    assert halves[0] != halves[1], "a new order"


@pytest.mark.usefixtures("small_windows")
@settings(max_examples=20)
@given(cuts=some.lists(some.integers(1, 25), min_size=1, max_size=12))
def test_drawing_in_other_portions_gives_the_same_rows(corpora: dict[str, Corpus], cuts: list[int]) -> None:
    """Each portion by windows of its own: nothing but places is kept, as in a run that was killed."""

    def supplies() -> list[CorpusSupply]:
        return [supply(corpora, "a", 3), supply(corpora, "b", 1), supply(corpora, "c", 0.5, epochs=3)]

    whole, end = draw_rows(supplies(), {}, first=0, count=sum(cuts))
    found: list[PackedRow] = []
    places: dict[str, CorpusPlace] = {}
    for count in cuts:
        rows, places = draw_rows(supplies(), places, first=len(found), count=count)
        found += rows
    assert found == whole and places == end


@pytest.mark.usefixtures("small_windows")
def test_every_corpus_has_its_share_at_any_moment(corpora: dict[str, Corpus]) -> None:
    weights = {"a": 5.0, "b": 3.0, "c": 2.0}
    rows, _ = draw_rows([supply(corpora, *pair) for pair in weights.items()], {}, first=0, count=1000)
    for upto in (10, 50, 333, 1000):
        found = Counter(row.source for row in rows[:upto])
        assert all(abs(found[name] - upto * weight / 10) <= 3 for name, weight in weights.items())


@pytest.mark.usefixtures("small_windows")
def test_where_one_corpus_ends_the_others_go_on(corpora: dict[str, Corpus]) -> None:
    supplies = [supply(corpora, "a"), supply(corpora, "c", epochs=2)]
    rows, places = draw_rows(supplies, {}, first=0, count=60)
    assert len(rows) == 60 and places["c"] == CorpusPlace(14, 0)
    assert sum(row.num_tokens for row in rows if row.source == "c") == 2 * corpora["c"].num_tokens
    only, _ = draw_rows(supplies[1:], {}, first=0, count=60)
    assert len(only) < 60


@pytest.mark.usefixtures("small_windows")
def test_a_window_that_is_left_is_counted(corpora: dict[str, Corpus]) -> None:
    of_a = supply(corpora, "a")
    rows, places = draw_rows([of_a], {}, first=0, count=4)
    after, left = of_a.leave_window(places["a"])
    documents = permute(np.arange(40), 150, 3, "a", 0)
    assert after == CorpusPlace(40, 0)
    assert left + sum(row.num_tokens for row in rows) == corpora["a"].lengths(documents).sum()
    assert of_a.leave_window(after) == (after, 0)


def test_little_of_a_row_stays_empty(tmp_path: Path) -> None:
    lengths = np.random.default_rng(1).lognormal(4, 1, 3000).astype(int).clip(1, 2000)
    corpus = write_corpus(tmp_path / "log", list(lengths))
    packed = Windows("log", corpus, length=512, seed=0).at(0)
    assert 1 - sum(row.num_tokens for row in packed.rows) / (512 * len(packed.rows)) < 0.02


def test_a_batch_keeps_documents_apart_or_not(corpora: dict[str, Corpus]) -> None:
    rows = [
        PackedRow("c", (Stretch(3, 0, 4), Stretch(6, 2, 5))),
        PackedRow("c", (Stretch(1, 0, 1), Stretch(0, 0, 2))),
    ]
    by = {
        kind: pack_rows(rows, corpora, weight=0.5, attention=kind, device=CPU) for kind in ("document", "row")
    }
    ids = [id_at(3, t) for t in range(4)] + [id_at(6, t) for t in (2, 3, 4)]
    ids += [id_at(1, 0), *(id_at(0, t) for t in range(2))]
    for kind, starts, positions in (
        ("document", [0, 4, 7, 8, 10], [0, 1, 2, 3, 0, 1, 2, 0, 0, 1]),
        ("row", [0, 7, 10], [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]),
    ):
        batch = by[kind]
        assert batch.ids_T.tolist() == ids and batch.starts_S1.tolist() == starts
        assert batch.positions_T.tolist() == positions
        targets = [t for t, position in enumerate(positions) if position]
        assert batch.targets_M.tolist() == targets and batch.sources_M.tolist() == [t - 1 for t in targets]
        assert batch.weights_M.tolist() == [0.5] * len(targets)
        assert count_targets(rows, kind) == len(targets)  # type: ignore[arg-type]


class Rank:
    context = None

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self.data = rank, size, self


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_ranks_have_all_rows_together_and_as_many_batches(corpora: dict[str, Corpus], ranks: int) -> None:
    rows = [PackedRow("a", (Stretch(d, 0, 1), Stretch(d + 1, 0, 1))) for d in range(7)]
    shares = [
        [
            *row_batches(
                rows,
                corpora,
                Rank(rank, ranks),
                weight=1.0,
                attention="row",
                rows_at_once=2,
                device=CPU,  # type: ignore[arg-type]
            )
        ]
        for rank in range(ranks)
    ]
    assert len({len(share) for share in shares}) == 1
    trained = [
        id for share in shares for batch in share if batch.targets_M.numel() for id in batch.ids_T.tolist()
    ]
    assert sorted(trained) == sorted(id_at(d + k, 0) for d in range(7) for k in (0, 1))
    idle = [batch for share in shares for batch in share if not batch.targets_M.numel()]
    assert all(batch.ids_T.numel() == 1 and batch.names == () for batch in idle)
