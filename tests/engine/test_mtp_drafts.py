"""Drafts by MTP layers: these see what they would see in one pass over the whole text, and no token changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ahead_of_the_host import run_ahead
from mtp_models import MTP_MODELS, mtp_model
from small_engines import (
    SHAPES,
    Completion,
    Engine,
    ask,
    assert_all_free,
    assert_same,
    finish_all,
    mixed_requests,
    random_prompt,
    small_engine,
    small_model,
)
from torch import Tensor

from foresail.engine.drafts import Drafts
from foresail.engine.noise import uniforms
from foresail.engine.prefill import PrefillChunk, tokens_ahead
from foresail.engine.request import Request
from foresail.engine.sampling import inverse_cdf
from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.mtp import MtpHeads
from foresail.model.readouts import logits


def run(
    engine: Engine,
    requests: list[Request],
    *,
    chunk_tokens: int | None = None,
    mix: int = 0,
    propose: int = 1,
    unread: int = 1,
) -> tuple[dict[str, Completion], int]:
    """All completions with drafts by MTP layers, and how many steps they took.

    Of `mix` rows one has a draft from elsewhere instead; drafts are asked for in every `propose`-th step, and read
    in every `unread`-th.
    """
    found, steps, numbers = {}, 0, np.random.default_rng(0)
    for request in requests:
        engine.add(request, chunk_tokens=chunk_tokens)
    while engine.busy:
        engine.ask_for_drafts(steps % propose == 0)
        drafts = engine.unread_drafts() if steps % unread else engine.mtp_drafts()
        if mix and not drafts.is_unread and len(drafts.slots_R):
            others_R = drafts.slots_R % mix == 0
            wrong_RK = numbers.integers(0, 31, drafts.tokens_RK.shape)
            tokens_RK = np.where(others_R[:, None], wrong_RK, drafts.tokens_RK)
            drafts = Drafts(
                slots_R=drafts.slots_R, sizes_R=np.where(others_R, 5, drafts.sizes_R), tokens_RK=tokens_RK
            )
        for completion in engine.step(drafts):
            if completion.finish == "chunk":
                engine.go_on(completion.request.id, chunk_tokens=chunk_tokens)
            else:
                found[completion.request.id] = completion
        steps += 1
    return found, steps


@pytest.mark.parametrize(
    ("layers", "engine_options", "options"),
    [
        (1, {}, {}),
        (3, {"num_pages": 24, "max_running": 6}, {"mix": 3}),
        (3, {}, {"chunk_tokens": 3, "propose": 2}),
        (3, {"prefill_tokens": 5}, {"propose": 3}),
        (2, {"batch_invariant": True}, {}),
    ],
)
def test_tokens_are_those_of_plain_decoding(layers: int, engine_options: dict, options: dict) -> None:
    """Greedy and drawn, prompts shared and cut, rows preempted, chunks, drafts from several sources."""
    model, requests = MTP_MODELS[layers], mixed_requests()[9:]
    expected = finish_all(small_engine(model, **engine_options), requests)
    engine = small_engine(model, mtp=True, **engine_options)
    found, _ = run(engine, requests, **options)
    assert_same(found, expected)
    assert_all_free(engine)


@pytest.mark.parametrize(
    ("layers", "engine_options", "options"),
    [
        (1, {}, {"unread": 1000}),
        (3, {"num_pages": 24, "max_running": 6}, {"unread": 1000}),
        (3, {"num_pages": 24, "max_running": 6}, {"unread": 3, "mix": 3, "chunk_tokens": 4}),
        (3, {}, {"unread": 1000, "chunk_tokens": 3}),
        (2, {"prefill_tokens": 5}, {"unread": 5, "propose": 3, "chunk_tokens": 7}),
    ],
)
def test_drafts_that_are_not_read_change_no_token(layers: int, engine_options: dict, options: dict) -> None:
    """While the device is a step ahead of a host that does not know how far rows got; the last one also without."""
    model, requests = MTP_MODELS[layers], mixed_requests()[16:]
    expected = finish_all(small_engine(model), requests)
    engines = [run_ahead(small_engine(model, mtp=True, **engine_options))]
    engines += [small_engine(model, mtp=True, **engine_options)] if layers == 2 else []
    for engine in engines:
        assert_same(run(engine, requests, **options)[0], expected)
        assert_all_free(engine)


def test_turns_that_come_back_with_longer_prompts_and_parked_rows_go_on() -> None:
    model = MTP_MODELS[3]
    engine, plain = (small_engine(model, mtp=mtp) for mtp in (True, False))
    first = [ask("a", random_prompt(6), max_new_tokens=8, stop_ids=())]
    expected, found = finish_all(plain, first), run(engine, first)[0]
    assert_same(found, expected)
    longer = ask("a", (*first[0].prompt, *found["a"].ids, 3, 4, 5), max_new_tokens=12, stop_ids=())
    expected, found = finish_all(plain, [longer]), {}
    engine.add(longer)
    engine.ask_for_drafts()
    while engine.busy:
        for completion in engine.step(engine.mtp_drafts()):
            found[completion.request.id] = completion
        if (parked := engine.park("a")) is not None:
            engine.resume(parked)
    assert_same(found, expected)


# What the layers say, step by step.


@torch.no_grad()
def reference_drafts(model: Decoder, request: Request, context: tuple[int, ...]) -> list[int]:
    """By one pass over the whole text: layer after layer, each with the drafts before it."""
    ids_T, drafts = torch.tensor(context), []
    last = len(context) - 2  # the place whose next token is known
    positions_T, attend = torch.arange(last + 1), PackedAttention(torch.tensor([0, last + 1]))

    def ahead(stream_TD: Tensor, heads: MtpHeads) -> None:
        for number in range(len(heads)):
            known_T = torch.tensor((*context, *drafts))
            step = number + 1
            stream_TD, normed_TD = heads.run(
                number, stream_TD, known_T[step : step + last + 1], positions_T, attend
            )
            scores_V = heads.read(normed_TD, logits)[-1]
            noise = uniforms(torch.tensor([request.key]), torch.tensor([len(context) + number]))
            temperature = request.sampling.temperature
            token = (
                int(inverse_cdf((scores_V / temperature).log_softmax(-1)[None], noise))
                if temperature
                else int(scores_V.argmax())
            )
            drafts.append(token)

    model(ids_T[:-1], positions_T, attend, logits, ahead=ahead)
    return drafts


@pytest.mark.parametrize(("layers", "prompt"), [(1, 1), (1, 9), (3, 1)])
@pytest.mark.parametrize("checked", [True, False])
def test_layers_say_what_they_say_in_one_pass_over_the_text(layers: int, prompt: int, checked: bool) -> None:
    """Whether drafts were checked or only thought of, accepted or not: keys are those of the tokens that stand."""
    model = MTP_MODELS[layers]
    engine = small_engine(model, mtp=True, max_running=4)
    requests = [
        ask("hot", random_prompt(prompt), temperature=1.5, stop_ids=()),
        ask("greedy", random_prompt(prompt, 1), temperature=0.0, stop_ids=()),
    ]
    truth = finish_all(small_engine(model), requests)
    for request in requests:
        engine.add(request)
    compared = steps = 0
    while engine.busy:
        engine.ask_for_drafts()
        drafts = engine.mtp_drafts()
        for request in requests:
            row = engine.rows.find(request.id, "running")
            if row is None or row.slot not in drafts.slots_R:
                continue
            (line,) = np.flatnonzero(drafts.slots_R == row.slot)
            expected = reference_drafts(model, request, engine.tokens(request.id))
            assert drafts.tokens_RK[line, :layers].tolist() == expected
            compared += 1
            if steps % 2:  # so that several stand at once
                rest = truth[request.id].ids[len(engine.tokens(request.id)) - prompt :][:layers]
                drafts.tokens_RK[line, : len(rest)] = rest
        engine.step(drafts if checked else None)
        steps += 1
    assert compared > 10


def test_layers_that_were_not_asked_for_a_while_are_in_step_when_they_are() -> None:
    model, request = MTP_MODELS[3], ask("row", random_prompt(1), stop_ids=())
    engine = small_engine(model, mtp=True)
    engine.add(request)
    for _ in range(7):
        engine.step()
    engine.ask_for_drafts()
    engine.step()
    drafts = engine.mtp_drafts()
    assert drafts.tokens_RK[0, :3].tolist() == reference_drafts(model, request, engine.tokens("row"))


def test_right_drafts_save_steps() -> None:
    """A model of no layers' influence: all it says depends on the last token, which the MTP layer can copy."""
    model = copying_model()
    request = ask("row", (3, 4, 5), stop_ids=(), temperature=1.0, max_new_tokens=30)
    expected = finish_all(small_engine(model), [request])
    for unread in (1, 1000):
        found, steps = run(run_ahead(small_engine(model, mtp=True)), [request], unread=unread)
        assert_same(found, expected)
        assert steps <= 3 + 30 / 4  # every draft of three stands: four tokens a step


@torch.no_grad()
def copying_model() -> Decoder:
    """Blocks add nothing, and an MTP layer's state is its token: each layer says what the decoder says next."""
    model = mtp_model(3, "llama")
    for block in (*model.blocks, *(layer.block for layer in model.mtp)):
        block.attention.out.weight.zero_()
        block.mlp.down.weight.zero_()
    for layer in model.mtp:
        hidden = model.shape.hidden_size
        layer.join.weight.zero_()
        layer.join.weight[:, hidden:] = torch.eye(hidden)
        layer.token_norm.weight.fill_(1.0)
        layer.norm.weight.copy_(model.norm.weight)
    return model


def test_tokens_ahead_of_prompts_are_theirs_as_far_as_they_are_known() -> None:
    chunks = [
        PrefillChunk(tokens=(3, 5, 8), start=0, pages=(), following=(9,)),
        PrefillChunk(tokens=(1,), start=4, pages=(), following=(2, 6, 7)),
        PrefillChunk(tokens=(4,), start=0, pages=()),
    ]
    assert tokens_ahead(chunks, 2).tolist() == [[5, 8, 9, 2, 4], [8, 9, 9, 6, 4]]


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="no MTP layers to draft with; see foresail mtp add"):
        small_engine(small_model(), mtp=True)


def test_an_engine_without_drafts_keeps_no_keys_of_them() -> None:
    with_them, without = (
        small_engine(MTP_MODELS[3], mtp=mtp).runner.cache.keys.shape[0] for mtp in (True, False)
    )
    assert (with_them, without) == (5, 2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mix": 3, "propose": 2},
        {"chunk_tokens": 5},
        {"unread": 1000},
        {"unread": 3, "mix": 3, "chunk_tokens": 5},
    ],
)
def test_tokens_on_a_gpu_are_those_of_plain_decoding(layers: int, options: dict) -> None:
    """In the mode where rows do not know each other, so that a draft beside them cannot change their rounding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SHAPES, "with mtp", {**SHAPES["qwen3"], "mtp": layers})
        model = small_model("with mtp", device="cuda", dtype=torch.bfloat16)
    requests = mixed_requests()[9:]
    engines = [
        small_engine(model, page_size=16, max_running=16, batch_invariant=True, mtp=mtp)
        for mtp in (False, True)
    ]
    expected, (found, steps) = finish_all(engines[0], requests), run(engines[1], requests, **options)
    assert_same(found, expected)
    assert steps < sum(len(completion.ids) for completion in expected.values())
    assert_all_free(engines[1])
