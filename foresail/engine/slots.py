"""The state of the running rows, as tensors on the device, so that a decode step has no Python per token.

Legend: S slots, B rows in use, P pages per row, L tokens drawn per row, X stop ids per row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foresail.engine.request import Request
from foresail.engine.sampling import SamplingRows

NO_ID = -1  # fills the rows of a table of token ids


class Slots:
    """One line per running row: what it drew last, where it stands, when it must stop."""

    def __init__(self, num_slots: int, device: torch.device) -> None:
        def integers(*size: int) -> Tensor:
            return torch.zeros(size, dtype=torch.int64, device=device)

        self.device = device
        self.last_S, self.lengths_S, self.drawn_S = (
            integers(num_slots),
            integers(num_slots),
            integers(num_slots),
        )
        self.limits_S, self.keys_S = integers(num_slots), integers(num_slots)
        self.settings = SamplingRows.empty(num_slots, device)
        self.stops_SX, self.tables_SP = integers(num_slots, 1), integers(num_slots, 8)
        self.tokens_SL = integers(num_slots, 64)
        self.logprobs_SL = torch.zeros(num_slots, 64, device=device)

    def seat(
        self, slots: list[int], requests: list[Request], lengths: list[int], pages: list[list[int]]
    ) -> None:
        """Put requests whose context is `lengths` long, and cached in `pages`, into empty slots."""
        rows = torch.tensor(slots, device=self.device)
        drawn = [length - len(request.prompt) for length, request in zip(lengths, requests, strict=True)]
        limits = [request.sampling.max_new_tokens - n for request, n in zip(requests, drawn, strict=True)]
        self.lengths_S[rows] = torch.tensor(lengths, device=self.device)
        self.limits_S[rows] = torch.tensor(limits, device=self.device)
        self.keys_S[rows] = torch.tensor([request.key for request in requests], device=self.device)
        self.drawn_S[rows] = 0
        for name in ("temperature", "top_p", "top_k", "min_p"):
            column = getattr(self.settings, f"{name}_B")
            values = [getattr(request.sampling, name) for request in requests]
            column[rows] = torch.tensor(values, dtype=column.dtype, device=self.device)
        most_stops = max(len(request.stop_ids) for request in requests)
        self.stops_SX = widened(self.stops_SX, most_stops, filler=NO_ID)
        self.stops_SX[rows] = rectangle([request.stop_ids for request in requests], self.stops_SX, NO_ID)
        self.tables_SP = widened(self.tables_SP, max(len(row) for row in pages))
        self.tables_SP[rows] = rectangle(pages, self.tables_SP)

    def add_pages(self, slots: list[int], columns: list[int], pages: list[int]) -> None:
        self.tables_SP = widened(self.tables_SP, max(columns) + 1)
        self.tables_SP[slots, columns] = torch.tensor(pages, device=self.device)

    def record(self, rows_B: Tensor, tokens_B: Tensor, logprobs_B: Tensor) -> Tensor:
        """Write one drawn token per row; tells who drew a stop id, who is at the limit, who met NaN."""
        drawn_B = self.drawn_S[rows_B]
        self.tokens_SL[rows_B, drawn_B] = tokens_B
        self.logprobs_SL[rows_B, drawn_B] = logprobs_B
        self.last_S[rows_B] = tokens_B
        self.drawn_S[rows_B] = drawn_B + 1
        self.lengths_S[rows_B] += 1
        stopped_B = (self.stops_SX[rows_B] == tokens_B[:, None]).any(1)
        full_B = drawn_B + 1 >= self.limits_S[rows_B]
        return torch.stack((stopped_B, full_B, logprobs_B.isnan()))

    def reserve(self, num_tokens: int) -> None:
        """Make sure every row can record so many tokens."""
        self.tokens_SL = widened(self.tokens_SL, num_tokens)
        self.logprobs_SL = widened(self.logprobs_SL, num_tokens)

    def drawn(self, slots: list[int]) -> list[tuple[list[int], list[float]]]:
        """Tokens and log-probabilities recorded in these slots since they were seated."""
        rows = torch.tensor(slots, device=self.device)
        counts = self.drawn_S[rows].tolist()
        longest = max(counts, default=0)
        tokens, logprobs = self.tokens_SL[rows, :longest].tolist(), self.logprobs_SL[rows, :longest].tolist()
        return [(t[:n], p[:n]) for t, p, n in zip(tokens, logprobs, counts, strict=True)]


def widened(table: Tensor, width: int, filler: int = 0) -> Tensor:
    """The table with at least so many columns; grows by doubling so that it happens rarely."""
    if table.shape[1] >= width:
        return table
    grown = table.new_full((table.shape[0], max(width, 2 * table.shape[1])), filler)
    grown[:, : table.shape[1]] = table
    return grown


def rectangle(rows: list[list[int]] | list[tuple[int, ...]], like: Tensor, filler: int = 0) -> Tensor:
    """Rows of unequal length as a tensor as wide as `like`."""
    width = like.shape[1]
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows], device=like.device)
