"""What the comparison with TRL rests on: checkpoints that never end, one reward for both sides, a fair clock."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import losses
import pytest
import torch
from load import prepare
from plots import draw_race
from race import curve, time_to
from speed import LOADS, smaller

from foresail.algorithms.advantages import ADVANTAGES
from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import policy_loss
from foresail.data.packing import pack
from foresail.model.attention import PackedAttention
from foresail.model.hf import load_model
from foresail.model.hf_names import weight_parts
from foresail.model.packed import token_logprobs
from foresail.model.readouts import logits
from foresail.tokenizer.tokenizer import Tokenizer

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("tied", [True, False])
def test_the_end_of_sequence_never_comes(tmp_path: Path, tied: bool) -> None:
    load = smaller(LOADS["tiny"])
    shape = load.shape.model_copy(update={"tied": tied})
    prompt_tokens = prepare(replace(load, shape=shape), tmp_path, 1)
    model = load_model(tmp_path, dtype=torch.float32, device="cpu")
    eos = Tokenizer.load(tmp_path).eos_ids
    ids_T = torch.randint(shape.vocab_size, (200,), generator=torch.Generator().manual_seed(0))
    ids_T[torch.isin(ids_T, torch.tensor(eos))] = shape.vocab_size - 1
    with torch.no_grad():
        attend = PackedAttention(torch.tensor([0, 200]))
        logprobs_TV = torch.log_softmax(model(ids_T, torch.arange(200), attend, logits).value, -1)
    assert logprobs_TV[:, eos].max() < -15  # less than once in a million tokens
    assert logprobs_TV.exp().max() < 0.9  # and nothing else is certain
    assert prompt_tokens == 13


def test_every_id_has_a_text_of_its_own(tmp_path: Path) -> None:
    prepare(LOADS["small"], tmp_path, 1)
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.vocab_size == LOADS["small"].shape.vocab_size
    texts = [tokenizer.decode([token]) for token in range(tokenizer.vocab_size)]
    assert all(texts) and len(set(texts)) == len(texts)


def test_rewards_read_text_and_messages_alike() -> None:
    rewards = runpy.run_path(str(BENCHMARKS / "beside_trl" / "reward_functions.py"))
    texts = [r"<think>1 +3=4</think>\boxed{4}", r"\boxed{4} or \boxed{5}", "4"]
    messages = [[{"role": "assistant", "content": text}] for text in texts]
    for completions in (texts, messages):
        assert rewards["boxed"](completions=completions, answer=["4"] * 3) == [1.0, 0.0, 0.0]
    assert rewards["parity"](completions=texts[:2], completion_ids=[[1, 2], [2, 2]]) == [1.0, 0.0]


def test_time_to_a_reward_is_that_of_the_running_mean() -> None:
    steps = [
        {"elapsed": float(number), "reward": reward}
        for number, reward in enumerate([0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    ]
    points = curve(steps)
    assert [round(reward, 2) for _, reward in points] == [0.0, 0.5, 0.33, 0.5, 0.6, 0.8]
    assert time_to(0.6, points) == 4.0
    assert time_to(0.9, points) is None


def test_a_race_in_which_one_side_came_to_no_step_is_drawn(tmp_path: Path) -> None:
    laps = [
        {"curves": {"theirs": [], "ours": [(1.0, 0.2)]}},
        {"curves": {"theirs": [(9.0, 0.1)], "ours": []}},
    ]
    draw_race(laps, tmp_path / "race.png", window=5)
    assert (tmp_path / "race.png").stat().st_size > 1000


@pytest.mark.parametrize("setting", losses.SETTINGS, ids=lambda setting: setting.name)
def test_the_oracle_gets_the_gradient_of_a_whole_train_step(tmp_path: Path, setting: losses.Setting) -> None:
    """Here held against one backward pass over one batch, which stands in for TRL's."""
    model = losses.make_model(tmp_path)
    sequences, rewards_GN = losses.make_samples(model)
    advantages_GN = ADVANTAGES[setting.advantage](rewards_GN, torch.ones_like(rewards_GN))
    given = losses.give_advantages(sequences, advantages_GN)
    counts = [sum(sequence.loss_mask) for sequence in given]
    weights = token_weights(counts, setting.ours.aggregation, losses.MAX_NEW_TOKENS)
    (whole,) = losses.with_entropies(model, pack(given, weights, max_tokens=10_000), setting.ours)
    logprobs_M, entropy_M = token_logprobs(model, whole, losses.TEMPERATURE)
    loss, _ = policy_loss(logprobs_M, whole, setting.ours)
    loss = loss - setting.ours.entropy_weight * (whole.weights_M * entropy_M).sum()
    loss.backward()
    expected = {
        part.hf_name: model.get_parameter(part.parameter).grad.narrow(0, part.start, part.sizes[0]).clone()
        for part in weight_parts(model.shape)
    }
    model.zero_grad()
    found = losses.compare(model, given, setting, {"loss": loss.item(), "clipped": 0.0}, expected)
    assert found["micro_batches"] == 4 and found["gradient_norm"] > 0.1
    assert max(found["loss_difference"], found["gradient_difference"]) < losses.LIMIT
