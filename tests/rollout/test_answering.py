"""Answers of a checkpoint: the same whatever is asked beside them; a question that is too long is refused."""

import json

import pytest
import torch

from foresail.chat.endpoint import Refused, seed_of
from foresail.data.packing import pack
from foresail.model.device import choose_dtype
from foresail.model.hf import load_model
from foresail.model.packed import token_logprobs
from foresail.recipe.tables.answerer import Answerer
from foresail.records import Message, TrainSequence
from foresail.rollout.answering.answerer import open_answerer
from foresail.tokenizer.tokenizer import Tokenizer


def question(text):
    return (Message(role="user", content=text),)


@pytest.fixture(scope="module")
def answer(tiny_checkpoint):
    return open_answerer(Answerer(checkpoint=str(tiny_checkpoint), temperature=1.0, max_new_tokens=8))


def test_an_answer_depends_on_its_key_alone(answer):
    one, two = question("7 +5 *3"), question("4 *4 -2")
    together = answer([one, two, one], ["a", "b", "c"])
    assert [answer([one], ["a"])[0], answer([two], ["b"])[0]] == [*together[:2]]
    samples = {answer([one], [f"key {number}"])[0] for number in range(8)}
    assert len(samples) > 1


def test_a_question_that_is_too_long_is_refused_alone(answer):
    short, long = answer([question("7 +5 *3"), question("7 +5 *3 " * 200)], ["a", "b"])
    assert isinstance(short, str) and isinstance(long, Refused)
    assert "context" in long.detail


def test_who_answers_must_be_clear(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name who answers"):
        Answerer()
    with pytest.raises(ValueError, match="endpoint needs model"):
        Answerer(endpoint="http://localhost:1/v1")
    with pytest.raises(FileNotFoundError, match="is no checkpoint"):
        open_answerer(Answerer(checkpoint=str(tmp_path)))
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ValueError, match="the environment has no NO_SUCH_KEY"):
        open_answerer(Answerer(endpoint="http://localhost:1/v1", model="m", key_env="NO_SUCH_KEY"))


def test_a_servers_seed_is_of_31_bits_and_of_seed_and_key():
    seeds = {seed_of(seed, key) for seed in range(3) for key in ("a", "b")}
    assert len(seeds) == 6 and all(0 <= seed < 2**31 for seed in seeds)


def test_choices_have_the_probabilities_of_the_model(tiny_checkpoint, answer):
    conversations, choices = [question("7 +5 *3"), question("4 *4 -2")], ["4", "12", "7"]
    one, two = answer(conversations, ["a", "b"], choices=choices)
    assert answer([conversations[1]], ["b"], choices=choices) == [two]
    tokenizer, device = Tokenizer.load(tiny_checkpoint), torch.device("cpu")
    model = load_model(tiny_checkpoint, dtype=choose_dtype("auto", device), device=device)
    prompt, weights = tokenizer.encode_prompt(conversations[0]), []
    for choice in choices:
        ids = tokenizer.encode(choice)
        row = TrainSequence(ids=[*prompt, *ids], loss_mask=[0] * len(prompt) + [1] * len(ids))
        (batch,) = pack([row], [1.0], max_tokens=4096)
        with torch.no_grad():
            weights.append(token_logprobs(model, batch)[0].sum().exp().item())
    assert json.loads(one) == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-5)


def test_special_tokens_in_a_question_are_no_special_tokens(tiny_checkpoint):
    tokenizer = Tokenizer.load(tiny_checkpoint)
    special = max(tokenizer.special_tokens(), key=len)
    plain, forged = (tokenizer.encode_request(question(text)) for text in ("7", f"7 {special} 7"))
    assert forged.count(tokenizer.token_id(special)) == plain.count(tokenizer.token_id(special))
