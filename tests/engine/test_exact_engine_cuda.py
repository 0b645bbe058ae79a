"""In batch-invariant mode engine and trainer compute the same logits, bit for bit."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import small_engines
import torch
from small_engines import (
    SHAPES,
    Completion,
    Engine,
    ask,
    ask_group,
    finish_all,
    random_prompt,
    small_engine,
    small_model,
)
from torch import Tensor

from foresail.engine.drafts import Draft
from foresail.model import linear
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.readouts import logits

if torch.cuda.is_available():
    from foresail.engine.kernels.sampling import sample_untruncated

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
WIDE = {"hidden_size": 256, "intermediate_size": 320, "num_heads": 14, "head_dim": 64, "max_context": 600}
REQUESTS = [
    *ask_group("group", random_prompt(70), 3, stop_ids=(), max_new_tokens=40),
    *(ask(f"{n}", random_prompt(n), stop_ids=(), max_new_tokens=30) for n in (1, 2, 33, 64, 130, 400)),
    ask("greedy", random_prompt(60), stop_ids=(), temperature=0.0),
    ask("hot", random_prompt(120), stop_ids=(), temperature=1.5),
]


EXPERTS = {"hidden_size": 64, "max_context": 600}


@pytest.fixture(params=["narrow", "wide", "experts"])
def model(request, monkeypatch) -> Decoder:
    """Heads of a size that must be padded, seven of them to a key head of a usual size, and experts."""
    return exact_model(request.param, monkeypatch)


@pytest.fixture(params=["narrow", "wide"])
def dense_model(request, monkeypatch) -> Decoder:
    """No router, which gives some token another expert where something is rounded otherwise."""
    return exact_model(request.param, monkeypatch)


def exact_model(name: str, monkeypatch: pytest.MonkeyPatch) -> Decoder:
    shapes = {
        "narrow": SHAPES["qwen3"] | {"max_context": 600},
        "wide": SHAPES["qwen2"] | WIDE | {"num_kv_heads": 2},
        "experts": SHAPES["ernie4_5_moe"] | EXPERTS,
    }
    monkeypatch.setitem(small_engines.SHAPES, "exact", shapes[name])
    return small_model("exact", device="cuda", dtype=torch.bfloat16)


def invariant_engine(model: Decoder, **options) -> Engine:
    return small_engine(model, page_size=16, max_running=16, batch_invariant=True, **options)


@torch.no_grad()
def trainer_logits(model: Decoder, sequences: list[tuple[int, ...]]) -> list[Tensor]:
    """Of each sequence, from one packed pass over all."""
    lengths = [len(sequence) for sequence in sequences]
    ids_T = torch.tensor([token for sequence in sequences for token in sequence], device=model.device)
    positions_T = torch.cat([torch.arange(length) for length in lengths]).to(model.device)
    with linear.batch_invariant():
        attend = PackedAttention(torch.tensor([0, *lengths], device=model.device).cumsum(0))
        return list(model(ids_T, positions_T, attend, logits).value.split(lengths))


def whole(completion: Completion) -> tuple[int, ...]:
    return (*completion.request.prompt, *completion.ids)


def assert_trainer_agrees(model: Decoder, completions: list[Completion]) -> None:
    """To rounding by PyTorch's softmax; and to the bit where the trainer's logits are drawn from once more."""
    for completion, logits_LV in zip(
        completions, trainer_logits(model, list(map(whole, completions))), strict=True
    ):
        request, ids = completion.request, torch.tensor(completion.ids)
        first, temperature = len(request.prompt) - 1, request.sampling.temperature
        logits_NV = logits_LV[first : first + len(ids)]
        logprobs_NV = torch.log_softmax(logits_NV / (temperature or 1.0), -1).cpu()
        found_N = torch.tensor(completion.logprobs)
        torch.testing.assert_close(logprobs_NV.gather(1, ids[:, None])[:, 0], found_N, rtol=0, atol=2e-6)
        tokens_N, again_N = sample_untruncated(
            logits_NV,
            torch.zeros(len(ids), dtype=torch.int32, device=model.device),
            torch.tensor([temperature], device=model.device),
            torch.tensor([request.key], device=model.device),
            torch.arange(first, first + len(ids), device=model.device),
        )
        assert tokens_N.tolist() == completion.ids, request.id
        assert again_N.tolist() == completion.logprobs, request.id


def test_cuda_engine_and_trainer_agree_to_the_bit(model):
    """Prompts are computed in pieces of at most 50 tokens."""
    completions = finish_all(invariant_engine(model, prefill_tokens=50), REQUESTS)
    assert_trainer_agrees(model, list(completions.values()))


def test_cuda_drafts_keep_every_bit(model):
    """Right ones are taken, wrong ones change nothing."""
    plain = finish_all(invariant_engine(model), REQUESTS)
    engine, found = invariant_engine(model), {}
    for request in REQUESTS:
        engine.add(request)
    while engine.busy:
        drafts = {}
        for number, request in enumerate(REQUESTS):
            if (tokens := engine.tokens(request.id)) is not None:
                rest = tuple(plain[request.id].ids[len(tokens) - len(request.prompt) :][:5])
                wrong = next(token for token in range(3) if token not in rest[:2])
                drafts[request.id] = (
                    Draft(tokens=rest),
                    Draft(tokens=(*rest[:1], wrong)),
                    Draft(tokens=(wrong, *rest[:1])),
                )[number % 3]
        found |= {
            completion.request.id: completion for completion in engine.step(engine.drafts_by_slot(drafts))
        }
    assert max(kind.size for kind in engine.runner.graphs) > 16  # than rows: drafts were tried
    for name, completion in plain.items():
        assert (found[name].ids, found[name].logprobs) == (completion.ids, completion.logprobs)
    assert_trainer_agrees(model, list(found.values()))


def test_cuda_packing_changes_no_bit_of_the_trainers_logits(model):
    sequences = [random_prompt(length, length) for length in (1, 17, 64, 65, 300, 128)]
    packed = trainer_logits(model, sequences)
    for sequence, logits_LV in zip(sequences, packed, strict=True):
        assert torch.equal(trainer_logits(model, [sequence])[0], logits_LV)


def test_cuda_gradients_stay_those_of_the_plain_trainer(dense_model):
    """The packed pass in the mode, backwards: every parameter's gradient is near the usual one's."""
    model = dense_model
    ids_T, starts_S1 = (
        torch.tensor(random_prompt(200), device="cuda"),
        torch.tensor([0, 150, 200], device="cuda"),
    )
    positions_T = torch.cat((torch.arange(150), torch.arange(50))).cuda()
    gradients = []
    for mode in (linear.batch_invariant, nullcontext):
        model.zero_grad()
        with mode():
            logits_TV = model(ids_T, positions_T, PackedAttention(starts_S1), logits).value
        logits_TV.float().log_softmax(-1)[:, 3].sum().backward()
        gradients.append({name: parameter.grad.float() for name, parameter in model.named_parameters()})
    found, expected = gradients
    for name, gradient in expected.items():
        assert gradient.norm() > 0, name
        assert (found[name] - gradient).norm() < 0.1 * gradient.norm(), name
