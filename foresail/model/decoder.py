"""The dense decoder: what the trainer differentiates is what the engine runs.

Tokens are flat: no batch axis, no padding. The only place where one token meets another is `attend`,
which the caller brings: the trainer's keeps packed sequences apart, the engine's reads the paged cache.
Query, key and value share one matrix, and so do gate and up, because both sides are faster that way.

Legend: T tokens, D hidden size, I inner width of the MLP, V vocabulary, H query heads, K key/value heads,
d head size, X all heads of a projection.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from foresail.model.gated import silu_mul
from foresail.model.linear import Linear, wide_linear
from foresail.model.norm import RMSNorm
from foresail.model.remade import Remade, kept, remade
from foresail.model.rotary import norm_rotate, rotary_table, rotate
from foresail.recipe.shape import ModelShape


class Attend(Protocol):
    """Causal attention for one layer: each token over its own sequence's past and itself."""

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor: ...


class Keep(Attend, Protocol):
    """Attention over a cache, which can also take in keys and values that nothing looks at yet."""

    def keep(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None: ...


class Attention(nn.Module):
    """x + what each token gathers from its past; the sum may take the place of x (see `add_linear`)."""

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

    def keep(self, normed_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Keep) -> None:
        """Hand over keys and values and look at nothing; their rows of the matrix are the last ones."""
        kv_TX = self.qkv.tail(normed_TD, self.shape.num_heads * self.shape.head_dim)
        _, k_TKd, v_TKd = self._split(kv_TX, 0, cos_Td, sin_Td)
        attend.keep(self.layer, k_TKd, v_TKd)

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


class MLP(nn.Module):
    """x + what each token makes of itself; the sum may take the place of x."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gate_up = Linear(shape.hidden_size, 2 * shape.intermediate_size, bias=False)
        self.down = Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x_TD: Tensor, normed_TD: Tensor, remade: Remade) -> Tensor:
        gate_up_T2I = self.gate_up(normed_TD)
        inner_TI = silu_mul(gate_up_T2I)
        with remade(inner_TI, silu_mul, gate_up_T2I):
            return self.down.add_to(x_TD, inner_TI)


class Block(nn.Module):
    def __init__(self, shape: ModelShape, layer: int) -> None:
        super().__init__()
        self.remade: Remade = remade
        self.attention_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.attention = Attention(shape, layer)
        self.mlp_norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.mlp = MLP(shape)

    def forward(self, x_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Attend) -> Tensor:
        x_TD, normed_TD = self.attention_norm.beside(x_TD)
        with self.remade(normed_TD, self.attention_norm, x_TD):
            x_TD = self.attention(x_TD, normed_TD, cos_Td, sin_Td, attend)
        x_TD, normed_TD = self.mlp_norm.beside(x_TD)
        with self.remade(normed_TD, self.mlp_norm, x_TD):
            return self.mlp(x_TD, normed_TD, self.remade)

    def keep(self, x_TD: Tensor, cos_Td: Tensor, sin_Td: Tensor, attend: Keep) -> None:
        self.attention.keep(self.attention_norm(x_TD), cos_Td, sin_Td, attend)


class Decoder(nn.Module):
    """ids and positions in, hidden states out; `logits` turns the ones you need into scores."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape, self.recompute = shape, False
        self.embed = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.blocks = nn.ModuleList(Block(shape, layer) for layer in range(shape.num_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.norm_eps)
        self.head = None if shape.tied else nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        cos, sin = rotary_table(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def recompute_blocks(self) -> None:
        """Keep only what enters a block, and compute all else anew in the backward pass."""
        self.recompute = True
        for block in self.blocks:
            assert isinstance(block, Block)
            block.remade = kept  # what is remade needs its sources kept, and nothing is

    def forward(self, ids_T: Tensor, positions_T: Tensor, attend: Attend) -> Tensor:
        x_TD = self._begin(ids_T)
        turns = self._turns(positions_T)
        for block in self.blocks:
            if self.recompute and torch.is_grad_enabled():
                x_TD = checkpoint(block, x_TD, *turns, attend, use_reentrant=False, preserve_rng_state=False)
            else:
                x_TD = block(x_TD, *turns, attend)
        return self.norm(x_TD)

    def fill(self, ids_T: Tensor, positions_T: Tensor, attend: Keep) -> None:
        """Keys and values of every layer, into what `attend` keeps them in; the last block does no more."""
        x_TD = self._begin(ids_T)
        turns = self._turns(positions_T)
        *blocks, last = self.blocks
        for block in blocks:
            x_TD = block(x_TD, *turns, attend)
        assert isinstance(last, Block)
        last.keep(x_TD, *turns, attend)

    def _begin(self, ids_T: Tensor) -> Tensor:
        """The residual stream, float32 whatever the weights are: rounded in every layer, it would drift apart in
        engine and trainer. It is memory of this pass alone, so that blocks may add to it in place.
        """
        return self.embed(ids_T).float()

    def _turns(self, positions_T: Tensor) -> tuple[Tensor, Tensor]:
        return self.cos[positions_T].to(self.dtype), self.sin[positions_T].to(self.dtype)

    def logits(self, hidden_TD: Tensor) -> Tensor:
        return wide_linear(hidden_TD, self.head_weight)

    @property
    def head_weight(self) -> Tensor:
        return self.embed.weight if self.head is None else self.head.weight

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.weight.dtype


@torch.no_grad()
def init_weights(model: Decoder, seed: int) -> None:
    """Fresh weights from one seed, the same on every device: what enters a layer leaves it at the same scale.

    The embedding too: a smaller one would drown in what the first layer adds to it.
    """
    generator = torch.Generator().manual_seed(seed)
    depth_scale = (2 * model.shape.num_layers) ** -0.5
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        std = parameter.shape[1] ** -0.5
        if name.endswith(("attention.out.weight", "mlp.down.weight")):
            std *= depth_scale
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
