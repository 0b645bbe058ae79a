"""Multi-token prediction as in MiMo: layers after the decoder that each predict one token further.

    h' = join [norm(h_i); norm(E(t_{i+k}))] -> block -> norm -> head: the token t_{i+k+1}

Layer k (from 1) sees what layer k-1 made of a place, at first the decoder's residual stream before its last norm,
and the token k places on. Embedding and head are the decoder's. MiMo puts the state before the token, DeepSeek the
token before the state. MiMo's checkpoints have one layer; that layer 2 sees the stream before layer 1's norm, as
layer 1 sees the decoder's, is DeepSeek's way. vLLM has zeros in the place of the embedding at position 0; the
formula has not, and nor have we.

Legend: T tokens, D hidden size, V vocabulary, d head size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from foresail.model.linear import Linear
from foresail.model.norm import RMSNorm
from foresail.model.readouts import Readout
from foresail.recipe.shape.model_shape import ModelShape

A = TypeVar("A")
R = TypeVar("R")


class MtpLayer(nn.Module):
    """State and token of each place in, the residual stream behind the block out; `norm` is for the head."""

    def __init__(self, shape: ModelShape, block: nn.Module) -> None:
        super().__init__()
        self.hidden_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.token_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.join = Linear(2 * shape.hidden_size, shape.hidden_size, bias=False)
        self.block = block
        self.norm = RMSNorm(shape.hidden_size, shape.norm_eps)

    def forward(
        self, stream_TD: Tensor, token_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Any, fill: bool
    ) -> tuple[Tensor, Tensor]:
        """The stream, and its norm; with `fill` keys and values are written and neither is of use."""
        both_T2D = torch.cat((self.hidden_norm(stream_TD), self.token_norm(token_TD)), dim=1)
        x_TD = self.go_on(both_T2D, cos_Td, sin_Td, attend, fill)
        return x_TD, x_TD if fill else self.norm(x_TD)

    def go_on(self, both_T2D: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Any, fill: bool) -> Tensor:
        """The stream, from state and token side by side."""
        return self.block(self.join(both_T2D).float(), cos_Td, sin_Td, attend, fill).value


@dataclass(frozen=True, kw_only=True)
class MtpHeads:
    """The MTP layers of a model, with the embedding, the head and the rotary tables that they share with it."""

    layers: tuple[MtpLayer, ...]
    embed_VD: Tensor
    head_VD: Tensor
    rotary: tuple[Tensor, Tensor]
    recompute: bool = False

    def __len__(self) -> int:
        return len(self.layers)

    def detached(self) -> MtpHeads:
        """The same, whose gradients reach neither embedding nor head."""
        return replace(self, embed_VD=self.embed_VD.detach(), head_VD=self.head_VD.detach())

    def run(
        self,
        number: int,
        stream_TD: Tensor,
        ids_T: Tensor,
        positions_T: Tensor,
        attend: Any,
        *,
        fill: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Layer `number` (from 0) over places whose tokens `number + 1` places on are `ids_T`: its stream, for the
        next layer, and what the head reads.
        """
        token_TD = F.embedding(ids_T, self.embed_VD).float()
        cos_Td, sin_Td = (table[positions_T].to(self.embed_VD.dtype) for table in self.rotary)
        inputs = (stream_TD, token_TD, cos_Td, sin_Td, attend, fill)
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(self.layers[number], *inputs, use_reentrant=False, preserve_rng_state=False)
        return self.layers[number](*inputs)

    def read(self, normed_TD: Tensor, readout: Readout[R]) -> R:
        return readout(normed_TD, self.head_VD)


Ahead = Callable[[Tensor, MtpHeads], A]  # of the stream and the layers, inside the model's forward pass


def stream(stream_TD: Tensor, heads: MtpHeads) -> Tensor:
    """An `Ahead` that returns the stream, for callers that run the layers outside the pass."""
    return stream_TD
