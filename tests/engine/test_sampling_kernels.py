"""The fused kernels give the tokens and log-probabilities that noise.py and sampling.py give.

Without a GPU the kernels run in Triton's interpreter.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from triton_interpreter import tl, triton

from foresail.engine.kernels import sampling
from foresail.engine.noise import noise_key, uniforms
from foresail.engine.sampling import SamplingRows, sample

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TEMPERATURES = torch.tensor([1.0, 0.6, 2.5, 0.0, 1.0])  # of the slots
SLOTS = len(TEMPERATURES)
EDGE = 1e-6  # nearer than this to the border of two shares, rounding may choose either


def make_keys(slots: int = SLOTS) -> Tensor:
    return torch.tensor([noise_key(3, 0, "draw", slot) for slot in range(slots)])


def make_logits(entries: int, vocabulary: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(entries, vocabulary, generator=generator) * 3).to(dtype)


def sample_rows(
    logits: Tensor, slots: Tensor, positions: Tensor, temperatures: Tensor = TEMPERATURES, keys=None
):
    keys = make_keys(len(temperatures)) if keys is None else keys
    inputs = (logits, slots.to(torch.int32), temperatures, keys, positions)
    tokens, logprobs = sampling.sample_untruncated(*(x.to(DEVICE) for x in inputs))
    assert tokens.dtype == torch.int64 and logprobs.dtype == torch.float32
    return tokens.cpu(), logprobs.cpu()


def sampled(logits: Tensor, temperatures: Tensor, noise: Tensor) -> Tensor:
    rows = len(logits)
    settings = SamplingRows(
        temperature_B=temperatures,
        top_p_B=torch.ones(rows),
        top_k_B=torch.zeros(rows, dtype=torch.int64),
        min_p_B=torch.zeros(rows),
    )
    return sample(logits, settings, noise, truncate=False)[0]


def check_against_plain_functions(logits: Tensor, slots: Tensor, positions: Tensor) -> None:
    temperatures, noise = TEMPERATURES[slots], uniforms(make_keys()[slots], positions + 1)
    tokens, logprobs = sample_rows(logits, slots, positions)
    scaled = logits.double() / temperatures.where(temperatures > 0, 1.0)[:, None]
    exact = torch.log_softmax(scaled, -1)  # float64: over 150,000 tokens float32 is off by 1e-5 itself
    torch.testing.assert_close(logprobs.double(), exact.gather(1, tokens[:, None])[:, 0], rtol=0, atol=5e-6)

    expected = sampled(logits, temperatures, noise)
    other = tokens != expected
    assert other.float().mean() < 0.1
    # Another token is right only beside a border of shares that the uniform number all but touches.
    assert ((tokens - expected)[other].abs() == 1).all() and (temperatures[other] > 0).all()
    borders = exact[other].exp().cumsum(-1).gather(1, torch.minimum(tokens, expected)[other, None])[:, 0]
    assert ((borders - noise[other]).abs() < EDGE).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_tokens_and_logprobs_are_those_of_the_plain_functions(dtype):
    slots = torch.arange(30) % SLOTS
    check_against_plain_functions(make_logits(30, 31, dtype=dtype), slots, torch.arange(30) // SLOTS * 17)


@pytest.mark.parametrize("block", [8, 32])
def test_a_vocabulary_of_many_blocks(block, monkeypatch):
    """The block in which the mark falls, and the last block with its ragged end, are all drawn from."""
    monkeypatch.setattr(sampling, "BLOCK", block)
    slots = torch.arange(40) % SLOTS
    check_against_plain_functions(make_logits(40, 75, seed=1), slots, torch.arange(40))


def test_a_real_vocabulary():
    slots = torch.tensor([0, 1, 2, 3, 4])
    check_against_plain_functions(
        make_logits(5, 151_936, seed=2), slots, torch.tensor([0, 5, 1000, 3, 70_000])
    )


@triton.jit
def uniform_numbers(keys, positions, numbers):
    entry = tl.program_id(0)
    number = sampling._uniform(tl.load(keys + entry), tl.load(positions + entry))
    tl.store(numbers + entry, number)


def test_noise_is_that_of_noise_py_bit_for_bit():
    keys = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), *make_keys(20)], device=DEVICE)
    positions = torch.tensor([0, 1, 7, 1000, 2**20], device=DEVICE).repeat(5)
    numbers = torch.empty(len(keys), dtype=torch.float64, device=DEVICE)
    uniform_numbers[(len(keys),)](keys, positions, numbers)
    assert torch.equal(numbers, uniforms(keys, positions))


@triton.jit
def choices(weights, marks, indices, SIZE: tl.constexpr):
    case = tl.program_id(0)
    x = tl.load(weights + tl.arange(0, SIZE))
    tl.store(indices + case, sampling._choose(x, tl.load(marks + case), x == tl.max(x, 0), False))


@pytest.mark.parametrize(
    ("mark", "index"),
    [(0.0, 1), (0.999, 1), (1.0, 4), (2.999, 4), (3.0, 5), (3.499, 5), (3.5, 5), (9.0, 5), (torch.nan, 5)],
)
def test_a_border_belongs_to_the_next_share_and_the_end_to_the_last(mark, index):
    weights = torch.tensor([0, 1, 0, 0, 2, 0.5, 0, 0], dtype=torch.float64, device=DEVICE)
    marks = torch.tensor([mark], dtype=torch.float64, device=DEVICE)
    indices = torch.empty(1, dtype=torch.int32, device=DEVICE)
    choices[(1,)](weights, marks, indices, SIZE=8)
    assert indices.item() == index


def test_a_row_does_not_depend_on_the_others():
    slots, positions = torch.arange(12) % SLOTS, torch.arange(12)
    logits = make_logits(12, 31, seed=3)
    tokens, logprobs = sample_rows(logits, slots, positions)
    for entry in range(12):
        alone = slice(entry, entry + 1)
        token, logprob = sample_rows(logits[alone], slots[alone], positions[alone])
        assert token.item() == tokens[entry] and logprob.item() == logprobs[entry]


def test_rows_may_lie_apart():
    wide = make_logits(6, 64, seed=4)
    slots, positions = torch.arange(6) % SLOTS, torch.arange(6)
    tokens, logprobs = sample_rows(wide[:, :31], slots, positions)
    expected_tokens, expected_logprobs = sample_rows(wide[:, :31].contiguous(), slots, positions)
    assert torch.equal(tokens, expected_tokens) and torch.equal(logprobs, expected_logprobs)


def test_greedy_takes_the_first_of_the_best_and_reports_temperature_1(monkeypatch):
    monkeypatch.setattr(sampling, "BLOCK", 8)
    logits = torch.zeros(3, 31)
    logits[0, [13, 20, 30]] = 2.0
    logits[1, [15, 16]] = 2.0
    logits[2] = -torch.inf
    logits[2, 30] = -5.0
    tokens, logprobs = sample_rows(logits, torch.full((3,), 3), torch.arange(3))
    assert tokens.tolist() == [13, 15, 30]
    torch.testing.assert_close(logprobs, torch.log_softmax(logits, -1).amax(-1))


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_tokens_of_probability_zero_are_never_drawn(monkeypatch, temperature):
    """Only 9 and 21 are possible: whole blocks before, between and after them are -inf."""
    monkeypatch.setattr(sampling, "BLOCK", 4)
    logits = torch.full((24, 31), -torch.inf)
    logits[:, 9], logits[:, 21] = 0.0, 1.0
    tokens, logprobs = sample_rows(
        logits, torch.arange(24) % 2, torch.arange(24), torch.full((2,), temperature)
    )
    assert set(tokens.tolist()) == ({9, 21} if temperature else {21})
    expected = torch.log_softmax(logits, -1).gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(logprobs, expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, from the interpreter
@pytest.mark.parametrize(
    ("bad", "where"),
    [(torch.nan, 0), (torch.nan, 30), (torch.nan, slice(None)), (torch.inf, 7), (-torch.inf, slice(None))],
)
def test_what_is_no_distribution_gives_a_valid_token_and_nan(monkeypatch, bad, where):
    monkeypatch.setattr(sampling, "BLOCK", 8)
    logits = make_logits(2 * SLOTS, 31, seed=5)
    logits[:SLOTS, where] = bad
    slots, positions = torch.arange(2 * SLOTS) % SLOTS, torch.arange(2 * SLOTS)
    tokens, logprobs = sample_rows(logits, slots, positions)
    assert logprobs[:SLOTS].isnan().all() and not logprobs[SLOTS:].isnan().any()
    assert tokens.min() >= 0 and tokens.max() < 31


def test_huge_and_tiny_logits():
    logits = make_logits(SLOTS, 31, seed=6) * 1e30
    tokens, logprobs = sample_rows(logits, torch.arange(SLOTS), torch.arange(SLOTS))
    assert torch.equal(tokens, logits.argmax(-1)) and (logprobs == 0).all()
