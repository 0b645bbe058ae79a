"""Filling the cache: the keys and values of a full forward pass, without the end of its last block."""

from __future__ import annotations

import pytest
import torch
from small_engines import SHAPES, random_prompt, small_model
from torch import Tensor

from foresail.engine.attention_cpu import ChunkAttention
from foresail.engine.cache import KVCache
from foresail.engine.prefill import PrefillChunk, pack_prefill
from foresail.model.decoder import Decoder
from foresail.model.readouts import Readout, hidden_states

PAGE_SIZE = 4
# two contexts, whose second pieces look back at the first over three layers
PIECES = [
    [
        PrefillChunk(tokens=random_prompt(6), start=0, pages=[3, 0]),
        PrefillChunk(tokens=random_prompt(1), start=0, pages=[5]),
    ],
    [
        PrefillChunk(tokens=random_prompt(5), start=6, pages=[3, 0, 7]),
        PrefillChunk(tokens=random_prompt(7), start=1, pages=[5, 2]),
    ],
]


class Notes(ChunkAttention):
    """Says which layers were asked, and which were given something to write."""

    def __init__(self, *context) -> None:
        super().__init__(*context)
        self.asked: list[int] = []
        self.written: list[int] = []

    def __call__(self, layer, q_THd, k_TKd, v_TKd):
        self.asked.append(layer)
        return super().__call__(layer, q_THd, k_TKd, v_TKd)

    def write(self, layer, k_TKd, v_TKd):
        self.written.append(layer)
        super().write(layer, k_TKd, v_TKd)


def run(model: Decoder, readout: Readout[Tensor] | None) -> tuple[KVCache, Notes]:
    """The cache after both pieces, and the notes of the second."""
    cache = KVCache.zeros(model.shape, num_pages=8, page_size=PAGE_SIZE, dtype=model.dtype)
    for chunks in PIECES:
        packed = pack_prefill(chunks, PAGE_SIZE)
        ids_T, positions_T, places_T, lengths_C, tables_CP = (
            torch.from_numpy(getattr(packed, name))
            for name in ("ids_T", "positions_T", "places_T", "lengths_C", "tables_CP")
        )
        notes = Notes(cache, tables_CP, places_T, positions_T, lengths_C)
        with torch.no_grad():
            model(ids_T, positions_T, notes, readout)
    return cache, notes


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_fill_writes_what_a_full_pass_writes(name, num_layers, monkeypatch):
    monkeypatch.setitem(SHAPES, name, SHAPES[name] | {"num_layers": num_layers})
    model = small_model(name)
    (filled, notes), (expected, _) = run(model, None), run(model, hidden_states)
    # the last layer's come from a product of fewer columns, whose sums may have another order
    for ours, theirs in ((filled.keys, expected.keys), (filled.values, expected.values)):
        assert (theirs.flatten(3).abs().sum(-1) > 0).sum() == num_layers * 19  # every token, in every layer
        assert torch.equal(ours[:-1], theirs[:-1])
        torch.testing.assert_close(ours[-1], theirs[-1], atol=1e-6, rtol=1e-6)
    assert notes.asked == list(range(num_layers - 1))
    assert notes.written == list(range(num_layers))


def test_fill_ends_where_the_last_keys_are_written():
    model = small_model()
    ran: list[str] = []
    for name, module in [
        ("query", model.blocks[-1].attention),
        ("mlp", model.blocks[-1].mlp),
        ("norm", model.norm),
    ]:
        module.register_forward_hook(lambda *_, name=name: ran.append(name))
    run(model, None)
    assert not ran
    run(model, hidden_states)
    assert ran == ["query", "mlp", "norm"] * len(PIECES)
