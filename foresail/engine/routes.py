"""Records the experts of every cached token beside its keys and values, for the trainer to replay.

The choices belong to pages, so shared prefixes, rows restored from the host and overwritten drafts need no extra
work. For prompts the last layer is not computed (`Decoder.forward` without a readout), so its choices are unknown
there; no loss depends on them.

Legend: L layers with experts, N pages, T tokens, A active experts.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.router import replay_refusals

UNKNOWN = -1


class RouteCache:
    """Choices by place, as keys and values: page * page_size + offset."""

    def __init__(self, shape: ModelShape, num_pages: int, page_size: int, device: torch.device) -> None:
        for refusal in replay_refusals(True, shape):
            raise ValueError(refusal)
        assert shape.experts is not None
        self.first_layer, layers = shape.experts.dense_layers, shape.num_layers - shape.experts.dense_layers
        size = (layers, num_pages, page_size, shape.experts.active)
        self.experts = torch.full(size, UNKNOWN, dtype=torch.int16, device=device)

    def write(self, layer: int, places_T: Tensor, experts_TA: Tensor) -> None:
        rows = self.experts[layer - self.first_layer].flatten(0, 1)
        rows.index_copy_(0, places_T.long(), experts_TA.to(torch.int16))

    def forget_last_layer(self, places_T: Tensor) -> None:
        """Mark the last layer's choices of prompt tokens as unknown."""
        self.experts[-1].flatten(0, 1).index_fill_(0, places_T.long(), UNKNOWN)

    def read(self, pages_N: Tensor, num_tokens: int) -> np.ndarray:
        """(tokens, layers x active) of the first tokens in these pages; waits for the device."""
        found_LTA = self.experts.index_select(1, pages_N).flatten(1, 2)[:, :num_tokens]
        return found_LTA.transpose(0, 1).flatten(1).cpu().numpy()


class RecordedRoutes:
    """A `Route` that records the choices of a pass without changing them."""

    def __init__(self, cache: RouteCache, places_T: Tensor) -> None:
        self.cache, self.places_T = cache, places_T

    def __call__(self, layer: int, experts_TA: Tensor) -> Tensor:
        self.cache.write(layer, self.places_T, experts_TA)
        return experts_TA
