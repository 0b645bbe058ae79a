"""The decoder, one model for trainer and engine.

    output = model(ids_T, positions_T, attend, logits)   # output.value is what the readout made
    model(ids_T, positions_T, attend, None)              # fills a cache with keys and values, reads nothing

Tokens are flat: no batch axis, no padding. The only place where one token meets another is `attend`,
which the caller brings: the trainer's keeps packed sequences apart, the engine's reads the paged cache.
Query, key and value share one matrix, and so do gate and up, because both sides are faster that way.

Weights are used only inside the `forward` of the model and its blocks, where sharded weights are gathered.

Legend: T tokens, D hidden size, V vocabulary, H query heads, K key/value heads,
d head size, X all heads of a projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from foresail.model.linear import Linear
from foresail.model.mixture import MixtureOfExperts
from foresail.model.mlp import MLP
from foresail.model.mtp import Ahead, MtpHeads, MtpLayer
from foresail.model.norm import RMSNorm
from foresail.model.output import Output, add_up, stack_layers
from foresail.model.readouts import Readout
from foresail.model.recomputed import Recompute, not_recomputed, recomputed
from foresail.model.rotary import norm_rotate, rotary_table, rotate
from foresail.model.router import Route
from foresail.recipe.shape.hf_unused import NOTHING_UNUSED
from foresail.recipe.shape.model_shape import ModelShape

R = TypeVar("R")


class Attend(Protocol):
    """Causal attention for one layer: each token over its own sequence's past and itself."""

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor: ...


class CachedAttend(Attend, Protocol):
    """Attention over a cache; `write` puts keys and values there that no token of this pass looks at."""

    def write(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None: ...


class Attention(nn.Module):
    """x + attention over each token's past; the sum may take the place of x (see `add_linear`)."""

    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        self.layer, self.shape = layer, shape
        heads = shape.num_heads + 2 * shape.num_kv_heads
        self.qkv = Linear(shape.hidden_size, heads * shape.head_dim, bias=shape.qkv_bias)
        self.out = Linear(shape.num_heads * shape.head_dim, shape.hidden_size, bias=False)
        self.q_norm = RMSNorm(shape.head_dim, shape.norm_eps) if shape.qk_norm else None
        self.k_norm = RMSNorm(shape.head_dim, shape.norm_eps) if shape.qk_norm else None

    def forward(
        self, x_TD: Tensor, normed_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Attend
    ) -> Tensor:
        q_THd, k_TKd, v_TKd = self._split(self.qkv(normed_TD), self.shape.num_heads, cos_Td, sin_Td)
        return self.out.add_to(x_TD, attend(self.layer, q_THd, k_TKd, v_TKd).flatten(1))

    def write(self, normed_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: CachedAttend) -> None:
        """Keys and values into the cache, and no attention; their rows of the matrix are the last ones."""
        kv_TX = self.qkv.tail(normed_TD, self.shape.num_heads * self.shape.head_dim)
        _, k_TKd, v_TKd = self._split(kv_TX, 0, cos_Td, sin_Td)
        attend.write(self.layer, k_TKd, v_TKd)

    def _split(
        self, qkv_TX: Tensor, queries: int, cos_Td: Tensor, sin_Td: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The heads of a projection, `queries` of them queries; those and the keys turned to their positions."""
        kv_heads = self.shape.num_kv_heads
        qk, v_TKd = qkv_TX.unflatten(-1, (-1, self.shape.head_dim)).split(
            (queries + kv_heads, kv_heads), dim=1
        )
        # queries and keys in one go
        if self.q_norm is not None and self.k_norm is not None:
            scales = self.q_norm.weight, self.k_norm.weight
            qk = norm_rotate(qk, cos_Td, sin_Td, *scales, queries, self.shape.norm_eps)
        else:
            qk = rotate(qk, cos_Td, sin_Td)
        q_THd, k_TKd = qk.split((queries, kv_heads), dim=1)
        return q_THd, k_TKd, v_TKd


def build_mlp(shape: ModelShape, layer: int) -> MLP | MixtureOfExperts:
    if (experts := shape.experts_in(layer)) is not None:
        return MixtureOfExperts(shape.hidden_size, experts)
    return MLP(shape.hidden_size, shape.intermediate_size)


class Block(nn.Module):
    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        self.recomputed: Recompute = recomputed
        self.attention_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.attention = Attention(shape, layer)
        self.mlp_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.mlp = build_mlp(shape, layer)

    def forward(
        self,
        x_TD: Tensor,
        cos_Td: Tensor,
        sin_Td: Tensor,
        attend: Attend,
        fill: bool = False,
        route: Route | None = None,
    ) -> Output[Tensor]:
        """With `fill` only keys and values are computed, and x is handed back as it came."""
        if fill:
            self.attention.write(self.attention_norm(x_TD), cos_Td, sin_Td, cast(CachedAttend, attend))
            return Output(x_TD)
        x_TD, normed_TD = self.attention_norm.branch(x_TD)
        with self.recomputed(normed_TD, self.attention_norm, x_TD):
            x_TD = self.attention(x_TD, normed_TD, cos_Td, sin_Td, attend)
        x_TD, normed_TD = self.mlp_norm.branch(x_TD)
        with self.recomputed(normed_TD, self.mlp_norm, x_TD):
            if route is not None and isinstance(self.mlp, MixtureOfExperts):
                here = partial(route, self.attention.layer)
                return self.mlp(x_TD, normed_TD, self.recomputed, here)
            return self.mlp(x_TD, normed_TD, self.recomputed)


class Decoder(nn.Module):
    """ids and positions in; the result is `readout` of the hidden states and the head's matrix."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape, self.recompute = shape, False
        self.unused = NOTHING_UNUSED  # of the checkpoint it is from
        self.embed = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.blocks = nn.ModuleList(Block(shape, layer) for layer in range(shape.num_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.head = nn.Linear(shape.hidden_size, shape.head_rows, bias=False) if shape.head_rows else None
        # last, so that a seed gives the rest the same weights with and without them
        layers = range(shape.num_layers, shape.cached_layers)
        self.mtp = nn.ModuleList(MtpLayer(shape, Block(shape, layer)) for layer in layers)
        cos, sin = rotary_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def recompute_blocks(self) -> None:
        """Keep only each block's input, and recompute the rest in the backward pass."""
        self.recompute = True
        for block in (*self.blocks, *(layer.block for layer in self.mtp)):
            assert isinstance(block, Block)
            block.recomputed = not_recomputed  # its sources are not saved either

    def forward(
        self,
        ids_T: Tensor,
        positions_T: Tensor,
        attend: Attend,
        readout: Readout[R] | None,
        route: Route | None = None,
        ahead: Ahead[Any] | None = None,
    ) -> Output[R | None]:
        """Without a readout the cache of `attend` is filled: the last block writes keys and values, and no more.

        `route`, where given, sees the choices of routers, and may replace them. `ahead` is called with the residual
        stream and the MTP layers; its result is `Output.ahead`.
        """
        # The residual stream, float32 whatever the weights are: rounded in every layer, it would drift apart in
        # engine and trainer. It is memory of this pass alone, so that blocks may add to it in place.
        x_TD = self.embed(ids_T).float()
        rotary = self.cos[positions_T].to(self.dtype), self.sin[positions_T].to(self.dtype)
        fill_block = self.blocks[-1] if readout is None and ahead is None else None
        losses: list[Mapping[str, Tensor]] = []
        statistics: list[Mapping[str, Tensor]] = []
        counts: list[Mapping[str, Tensor]] = []
        for block in self.blocks:
            if self.recompute and torch.is_grad_enabled():
                output = checkpoint(
                    block, x_TD, *rotary, attend, False, route, use_reentrant=False, preserve_rng_state=False
                )
            else:
                output = block(x_TD, *rotary, attend, block is fill_block, route)
            x_TD = output.value
            losses.append(output.losses)
            statistics.append(output.statistics)
            counts.append(output.counts)
        head_VD = self.embed.weight if self.head is None else self.head.weight
        value = None if readout is None else readout(self.norm(x_TD), head_VD)
        read_ahead = None if ahead is None else ahead(x_TD, self.mtp_heads(head_VD))
        return Output(value, add_up(losses), add_up(statistics), stack_layers(counts), read_ahead)

    def mtp_heads(self, head_VD: Tensor) -> MtpHeads:
        """The MTP layers with what they share; outside `forward` only where no weight is sharded."""
        return MtpHeads(
            layers=tuple(cast(MtpLayer, layer) for layer in self.mtp),
            embed_VD=self.embed.weight,
            head_VD=head_VD,
            rotary=(self.cos, self.sin),
            recompute=self.recompute,
        )

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.weight.dtype
