"""Two pieces of work at once: in turn on a CPU, on two streams in a captured graph, with the same results."""

from __future__ import annotations

import pytest
import torch

from foresail.model.overlap import overlapped


def test_without_a_graph_the_second_comes_later():
    order: list[str] = []
    assert overlapped(lambda: order.append("first"), lambda: order.append("second")) == (None, None)
    assert order == ["first", "second"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_in_a_graph_both_wait_for_what_was_before_and_are_waited_for():
    x, rows = torch.zeros(512, 512, device="cuda"), torch.arange(512.0, device="cuda")
    streams = set()

    def times(factor: int) -> torch.Tensor:
        streams.add(torch.cuda.current_stream())
        return (x + rows) * factor

    def step() -> torch.Tensor:
        for _ in range(8):
            x.add_(1)
            twice, thrice = overlapped(lambda: times(2), lambda: times(3))
            x.copy_(thrice - twice)
        return twice + thrice

    step()
    graph = torch.cuda.CUDAGraph()
    x.zero_()
    with torch.cuda.graph(graph):
        captured = step()
    for _ in range(20):
        x.zero_()
        graph.replay()
        assert torch.equal(captured[0], 5 * (8 + 8 * rows))
    assert len(streams) == 3  # the usual one, the capturing one, and the one beside that
