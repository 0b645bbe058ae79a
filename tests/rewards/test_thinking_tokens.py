"""Thinking tokens are counted as a reader of the text would, whether tags are one token or several."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from foresail.records import Group, Message, Problem, Sample, Verdict
from foresail.rewards.thinking import open_counter, read_thought, thinking_metrics
from foresail.rewards.trajectory import read_trajectory, turn_spans
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.train import train_bpe

TAGS = ("<think>", "</think>")
TOKENIZERS = {
    kind: train_bpe(
        ["a b think>"], vocab_size=280, whole_tokens=whole, chat_template=BUILT_IN["hybrid-short"][0]
    )
    for kind, whole in (("one token", TAGS), ("several tokens", ()))
}
ASKED = [Message(role="user", content="2?")]


def sample_of(prompt: list[int], response: list[int], forced: range = range(0)) -> Sample:
    ids, first = [*prompt, *response], len(prompt)
    places = [first + place for place in forced]
    mask = [int(place >= first and place not in places) for place in range(len(ids))]
    return Sample(
        ids=ids, loss_mask=mask, logprobs=[0.0] * len(ids), versions=[0] * len(ids), turns=[0] * len(ids),
        finish="stop", forced=places,
    )  # fmt: skip


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokens_up_to_the_closing_tag_are_thinking(kind):
    tokenizer, numbers = TOKENIZERS[kind], random.Random(kind)
    counter = open_counter(tokenizer)
    for _ in range(200):
        mode = numbers.random() < 0.5
        text = "".join(numbers.choices([*TAGS, "a", " b", "<", "think>", "</"], k=numbers.randint(1, 8)))
        prompt, response = tokenizer.encode_prompt(ASKED, mode), tokenizer.encode(text)
        start = 0 if mode else text.find("<think>")
        end = text.find("</think>", start if mode or start < 0 else start + len("<think>"))
        thought = read_thought(counter, sample_of(prompt, response))
        if start < 0:
            assert thought.tokens == 0 and thought.closed
        elif end < 0:
            assert thought.tokens == len(response) and not thought.closed
        else:
            spelled = tokenizer.decode(response[: thought.tokens])
            assert len(spelled) >= end + len("</think>") and thought.closed
            assert len(tokenizer.decode(response[: thought.tokens - 1])) < end + len("</think>")


def test_what_was_forced_is_the_responses_in_text_and_in_no_loss():
    tokenizer = TOKENIZERS["one token"]
    counter, prompt = open_counter(tokenizer), tokenizer.encode_prompt(ASKED, True)
    response = tokenizer.encode("a b\n</think>\n\na")
    for forced in (range(2, 5), range(4)):
        sample = sample_of(prompt, response, forced)
        assert turn_spans(sample) == [(0, len(prompt), len(sample.ids))]
        assert read_trajectory(tokenizer, sample).response == "<think>a b\n</think>\n\na"
        assert read_thought(counter, sample).forced


def test_modes_are_told_apart_and_templates_without_thinking_tell_nothing():
    tokenizer = TOKENIZERS["one token"]
    problem = Problem(id="p", prompt=tuple(ASKED), answer="2")
    verdicts = (Verdict(status="correct", score=1.0),)
    groups = [
        Group(
            problem=replace(problem, thinking=mode),
            samples=(sample_of(tokenizer.encode_prompt(ASKED, mode), tokenizer.encode(text)),),
            verdicts=verdicts,
            rewards=(1.0,),
        )
        for mode, text in ((True, "a</think>2"), (False, "2"))
    ]
    found = thinking_metrics(open_counter(tokenizer), groups)
    assert found["thinking/tokens/mean"] == 2 and found["thinking/off/tokens/max"] == 0
    assert found["thinking/accuracy"] == found["thinking/off/accuracy"] == 1
    assert thinking_metrics(open_counter(train_bpe(["a"], vocab_size=300)), groups) == {}
