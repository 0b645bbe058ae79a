"""The fused operations against plain PyTorch in float64, their gradients against autograd, and their use.

Compiled on a GPU; elsewhere in Triton's interpreter, whose bfloat16 is not to be trusted.

Legend: T tokens, I the MLP's inner width, h heads, d head size, M rows, N outputs, K inputs.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
import triton_interpreter  # noqa: F401
from torch import Tensor

from foresail.model import decoder, linear, readouts
from foresail.model.kernels import available, gated, matmul, rotary
from foresail.model.rotary import norm_rotate, rotary_table, rotate
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.shape.rope import RopeScaling

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPES = [torch.float32, torch.float16] + [torch.bfloat16] * CUDA
SHAPE = ModelShape(
    vocab_size=37,
    hidden_size=32,
    intermediate_size=40,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=12,
    max_context=64,
)
YARN = RopeScaling(type="yarn", factor=4.0, original_context=16)  # cosines and sines are larger by it
FAMILIES = {
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True, "rope_scaling": YARN},
    "llama": {"tied": False, "rope_scaling": YARN},
}


def noise(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(DEVICE, dtype)


def assert_rounded_once(out: Tensor, exact: Tensor) -> None:
    """Half of the last place, and a little for the float32 before the rounding.

    float32 itself has 32 places: a GPU's exp rounds x log2(e) first, which costs more the larger x is.
    """
    exact, numbers = exact.to(out.device), torch.finfo(out.dtype)
    _, exponents = torch.frexp(exact.double())
    last_place = numbers.eps * 2.0 ** (exponents.double() - 1)
    limit = 0.51 * last_place if out.dtype != torch.float32 else 32 * last_place
    # what is almost nothing may be nothing: exp(100) is too much for float32
    nothing = max(1e-30, numbers.smallest_normal * numbers.eps)
    assert ((out.double() - exact).abs() <= limit + nothing).all()


def assert_gradients_match(fused, plain, inputs: list[Tensor]) -> None:
    """`fused` in float32 and `plain` in float64, pulled back by the same slopes."""
    ours = [x.detach().clone().requires_grad_() for x in inputs]
    theirs = [x.detach().double().requires_grad_() for x in inputs]
    out, expected = fused(*ours), plain(*theirs)
    torch.testing.assert_close(out.double(), expected, atol=1e-5, rtol=1e-5)
    slopes = noise(*out.shape, seed=99)
    out.backward(slopes)
    expected.backward(slopes.double())
    for x, y in zip(ours, theirs, strict=True):
        assert y.grad.abs().max() > 0
        torch.testing.assert_close(x.grad.double(), y.grad, atol=1e-5, rtol=1e-5)


# The gate.


def plain_silu_mul(gate_up_T2I: Tensor) -> Tensor:
    gate, up = gate_up_T2I.chunk(2, dim=-1)
    return F.silu(gate) * up


@pytest.mark.filterwarnings(
    "ignore:overflow encountered in exp"
)  # of 100: the quotient is then zero, as it should
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 40, gated.COLUMNS + 3])
def test_silu_mul_rounds_once(width, dtype):
    gate_up = noise(3, 2 * width, dtype=dtype) * 4
    gate_up[0, 0], gate_up[1, 0] = -100, 100
    assert_rounded_once(gated.silu_mul(gate_up), plain_silu_mul(gate_up.double()))


@pytest.mark.parametrize("width", [40, gated.COLUMNS + 3])
def test_silu_mul_gradient(width):
    assert_gradients_match(gated.silu_mul, plain_silu_mul, [noise(3, 2 * width) * 4])


# Rotary positions.


def tables(head_dim: int, positions: list[int], scaling: RopeScaling | None = None) -> tuple[Tensor, Tensor]:
    cos, sin = rotary_table(SHAPE.model_copy(update={"head_dim": head_dim, "rope_scaling": scaling}))
    return cos[positions].to(DEVICE), sin[positions].to(DEVICE)


def turn_in_the_plane(x_Thd: Tensor, cos_Td: Tensor, sin_Td: Tensor) -> Tensor:
    """Pairs as complex numbers, times the unit number at their angle."""
    half = x_Thd.shape[-1] // 2
    numbers = torch.complex(x_Thd[..., :half].double(), x_Thd[..., half:].double())
    units = torch.complex(cos_Td[:, :half].double(), sin_Td[:, half:].double())
    turned = numbers * units[:, None]
    return torch.cat((turned.real, turned.imag), dim=-1)


def queries_and_keys(heads: int, head_dim: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The first heads of a wider projection, not a copy."""
    return noise(3, heads + 2, head_dim, dtype=dtype)[:, :heads]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "head_dim"), [(6, 12), (1, 2), (18, 128), (5, 256)])
def test_rotate_reads_the_projection_in_place(heads, head_dim, dtype):
    qk = queries_and_keys(heads, head_dim, dtype)
    cos, sin = (table.to(dtype) for table in tables(head_dim, [0, 5, 63]))
    out, expected = rotary.rotate(qk, cos, sin), turn_in_the_plane(qk, cos, sin)
    assert out.is_contiguous() and torch.equal(out[0], qk[0])  # position 0 turns nothing
    # the two products may cancel, so the places that count are those of the pair's length
    tolerance = (torch.finfo(dtype).eps + 1e-6) * qk.double().norm(dim=-1).max().item()
    torch.testing.assert_close(out.double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("scaling", [None, YARN])
def test_rotate_gradient(scaling):
    cos, sin = tables(12, [3, 7, 60], scaling)
    assert_gradients_match(
        lambda x: rotary.rotate(x, cos, sin),
        lambda x: rotate(x, cos.double(), sin.double()),
        [queries_and_keys(6, 12)],
    )


def plain_norm_rotate(x: Tensor, q_scale: Tensor, k_scale: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    normed = x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt()
    scaled = torch.cat((normed[:, :4] * q_scale, normed[:, 4:] * k_scale), dim=1)
    return rotate(scaled, cos.to(x.dtype), sin.to(x.dtype))


@pytest.mark.parametrize("head_dim", [12, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norm_rotate_gives_each_head_its_scale(dtype, head_dim):
    qk = queries_and_keys(18, head_dim, dtype) * 3
    q_scale, k_scale = noise(2, head_dim, seed=1, dtype=dtype)
    cos, sin = (table.to(dtype) for table in tables(head_dim, [0, 5, 63]))
    expected = plain_norm_rotate(qk.double(), q_scale.double(), k_scale.double(), cos, sin)
    tolerance = (torch.finfo(dtype).eps + 1e-6) * expected.abs().max().item()
    out = rotary.norm_rotate(qk, cos, sin, q_scale, k_scale, 4, 1e-3)
    torch.testing.assert_close(out.double(), expected, atol=tolerance, rtol=0)
    plain = norm_rotate(*(x.double() for x in (qk, cos, sin, q_scale, k_scale)), 4, 1e-3)
    torch.testing.assert_close(plain, expected, atol=1e-12, rtol=0)


def test_keys_can_be_turned_without_queries():
    """Read where a narrower projection left them, as when only keys and values are wanted."""
    qk, (q_scale, k_scale) = queries_and_keys(18, 12), noise(2, 12, seed=1)
    cos, sin = tables(12, [0, 5, 63])
    together = rotary.norm_rotate(qk, cos, sin, q_scale, k_scale, 4, 1e-3)
    alone = rotary.norm_rotate(qk[:, 4:], cos, sin, q_scale, k_scale, 0, 1e-3)
    torch.testing.assert_close(alone, together[:, 4:], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("scaling", [None, YARN])
def test_norm_rotate_gradient(scaling):
    cos, sin = tables(12, [3, 7, 60], scaling)
    q_scale, k_scale = noise(2, 12, seed=1)
    assert_gradients_match(
        lambda x, q, k: rotary.norm_rotate(x, cos, sin, q, k, 4, 1e-3),
        lambda x, q, k: plain_norm_rotate(x, q, k, cos, sin),
        [queries_and_keys(6, 12), q_scale, k_scale],
    )


# Products.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 5, 3), (130, 70, 100), (3, 200, 64)])
def test_products_of_any_size(rows, columns, depth, dtype):
    x, weight = noise(rows, depth, dtype=dtype), noise(columns, depth, seed=1, dtype=dtype)
    bias, residual = noise(columns, seed=2, dtype=dtype), noise(rows, columns, seed=3, dtype=dtype)
    product = x.double() @ weight.double().t()
    for addends in [(None, None), (bias, None), (None, residual), (bias, residual)]:
        exact = product + sum(part.double() for part in addends if part is not None)
        tolerance = 0.51 * torch.finfo(dtype).eps * exact.abs().max().item() + 1e-4
        out = matmul.linear(x, weight, *addends)
        torch.testing.assert_close(out.double(), exact, atol=tolerance, rtol=0)


def test_every_tile_is_met_once(monkeypatch):
    """Seven row tiles in bands of three, the last one low, over five columns of tiles."""
    monkeypatch.setattr(matmul, "FLOAT32", matmul.Tile(rows=16, columns=16, depth=16, warps=4, stages=2))
    monkeypatch.setattr(matmul, "ROW_TILES", 3)
    x, weight = noise(100, 20), noise(70, 20, seed=1)
    torch.testing.assert_close(matmul.linear(x, weight), x @ weight.t(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [96, matmul.NARROW_COLUMNS + 64])
def test_a_row_has_the_same_bits_in_any_batch(columns, dtype):
    if not CUDA and columns > matmul.NARROW_COLUMNS:
        pytest.skip("too many tiles for the interpreter")
    x, weight = noise(300, 512, dtype=dtype), noise(columns, 512, seed=1, dtype=dtype)
    together = matmul.linear(x, weight)
    for start, stop in [(0, 1), (7, 8), (100, 164), (255, 300)]:
        assert torch.equal(matmul.linear(x[start:stop], weight), together[start:stop])


def test_product_gradients():
    assert_gradients_match(
        matmul.linear,
        lambda x, weight, bias, residual: residual + F.linear(x, weight, bias),
        [noise(9, 20), noise(7, 20, seed=1), noise(7, seed=2), noise(9, 7, seed=3)],
    )


def test_a_wide_product_of_narrow_matrices_is_not_rounded():
    x, weight = noise(9, 64, dtype=DTYPES[-1]), noise(7, 64, seed=1, dtype=DTYPES[-1])
    exact = (x.double() @ weight.double().t()).float()
    out = matmul.linear(x, weight, out_dtype=torch.float32)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, exact, atol=1e-5, rtol=1e-5)
    assert (matmul.linear(x, weight).float() - exact).abs().max() > 1e-4  # the narrow one is


@pytest.mark.gpu
@pytest.mark.skipif(not CUDA, reason="needs a CUDA device")
@pytest.mark.parametrize("invariant", [False, True])
def test_logits_on_cuda_are_float32_and_differentiable(invariant):
    x, weight = noise(9, 64, dtype=torch.bfloat16), noise(7, 64, seed=1, dtype=torch.bfloat16)
    for tensor in (x, weight):
        tensor.requires_grad_()
    with linear.batch_invariant(invariant):
        out = linear.wide_linear(x, weight)
    torch.testing.assert_close(out, x.float() @ weight.float().t(), atol=1e-4, rtol=1e-4)
    grad = noise(9, 7, seed=2)
    out.backward(grad)
    torch.testing.assert_close(x.grad.float(), grad @ weight.float(), atol=0.1, rtol=0.02)
    torch.testing.assert_close(weight.grad.float(), grad.t() @ x.float(), atol=0.1, rtol=0.02)


def test_the_tile_does_not_know_the_number_of_rows():
    assert matmul.choose_tile(3584, torch.bfloat16) == matmul.NARROW
    assert matmul.choose_tile(37_888, torch.bfloat16) == matmul.WIDE
    assert matmul.choose_tile(37_888, torch.float32) == matmul.FLOAT32


# The model.


def random_model(**changes) -> decoder.Decoder:
    model = decoder.Decoder(SHAPE.model_copy(update=changes))
    for seed, parameter in enumerate(model.parameters()):
        scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1
        parameter.data = noise(*parameter.shape, seed=seed) * scale
    return model.to(DEVICE)


def see_yourself(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """No attention, so that only the products could join tokens; no sum either, for its order may vary."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    return v + 0.1 * q * k


def logits_of(model: decoder.Decoder, ids: Tensor) -> Tensor:
    return model(ids, ids, see_yourself, readouts.logits).value


@pytest.fixture(params=FAMILIES)
def model(request) -> decoder.Decoder:
    return random_model(**FAMILIES[request.param])


IDS = torch.arange(8, device=DEVICE)  # few: the interpreter takes its time for each


@pytest.mark.parametrize("invariant", [False, True])
def test_the_fused_model_is_the_plain_one(model, invariant, monkeypatch):
    """Logits, and the gradient of every parameter."""
    results = []
    for fused in (False, True):
        monkeypatch.setattr(available, "can_fuse", lambda x, fused=fused: fused)
        model.zero_grad()
        if invariant and fused:
            with linear.batch_invariant():
                logits = logits_of(model, IDS)
        else:
            logits = logits_of(model, IDS)
        logits.log_softmax(-1)[:, 3].sum().backward()
        results.append([logits.detach(), *(parameter.grad for parameter in model.parameters())])
    for plain, fused in zip(*results, strict=True):
        assert plain.abs().max() > 0
        torch.testing.assert_close(fused, plain, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
def test_logits_have_the_same_bits_in_any_batch(model, fused, monkeypatch):
    monkeypatch.setattr(available, "can_fuse", lambda x: fused)
    with torch.no_grad(), linear.batch_invariant():
        together = logits_of(model, IDS)
        for start, stop in [(0, 1), (3, 4), (5, 8)]:
            assert torch.equal(logits_of(model, IDS[start:stop]), together[start:stop])


def test_adding_in_place_changes_neither_result_nor_weights(model):
    before = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    with torch.no_grad():
        in_place = logits_of(model, IDS)
    assert torch.equal(in_place, logits_of(model, IDS))
    for name, parameter in model.state_dict().items():
        assert torch.equal(parameter, before[name]), name


def test_the_stream_is_reused_only_where_no_gradient_needs_it():
    stream, x, weight = noise(3, 5), noise(3, 4, seed=1), noise(5, 4, seed=2)
    kept = stream.clone()
    out = linear.add_linear(stream, x, weight)
    assert torch.equal(stream, kept)
    torch.testing.assert_close(out, stream + x @ weight.t())
    with torch.no_grad():
        assert linear.add_linear(stream, x, weight).data_ptr() == stream.data_ptr()
    assert torch.equal(stream, out)


@pytest.mark.parametrize("mode", [linear.batch_invariant, linear.thread_batch_invariant])
def test_the_invariant_mode_ends_with_its_block(monkeypatch, mode):
    calls = []
    monkeypatch.setattr(linear, "row_by_row", lambda *_, **__: calls.append(1))
    with mode():
        with contextlib.suppress(KeyError), mode():
            raise KeyError
        linear.linear(noise(1, 2), noise(3, 2))
        linear.add_linear(noise(1, 3), noise(1, 2), noise(3, 2))
    assert len(calls) == 2
    linear.linear(noise(1, 2), noise(3, 2))
    linear.add_linear(noise(1, 3), noise(1, 2), noise(3, 2))
    assert len(calls) == 2


def test_an_engines_mode_is_its_threads_and_a_runs_that_of_all():
    with ThreadPoolExecutor(1) as other:
        with linear.thread_batch_invariant():
            assert linear.is_batch_invariant() and not other.submit(linear.is_batch_invariant).result()
        with linear.batch_invariant():
            assert linear.is_batch_invariant() and other.submit(linear.is_batch_invariant).result()
