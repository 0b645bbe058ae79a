"""Templates with a switch for thinking: what is learnt stands behind the very prompt that a rollout has."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from foresail.data.chats.conversations import Chat
from foresail.data.chats.encode import encode_chats, turns_of
from foresail.recipe.tables.inputs import BUILT_IN_TEMPLATES
from foresail.recipe.tables.sources import Conversations
from foresail.records import Message
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import CHAT_TEMPLATE, train_bpe

# As Qwen3 has it: the model opens its thinking itself, and answers before the last question have none.
LIKE_QWEN3 = """\
{%- set ns = namespace(last=0) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for m in messages -%}
{%- set content = m.content -%}
{%- if m.role == 'assistant' and loop.index0 < ns.last -%}
{%- set content = m.content.split('</think>')[-1].lstrip() -%}
{%- elif m.role == 'assistant' and '</think>' not in m.content -%}
{%- set content = '<think>\\n\\n</think>\\n\\n' + m.content -%}
{%- endif -%}
{{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""
TEMPLATES = {name: text for name, (text, _) in BUILT_IN.items()} | {"like qwen3": LIKE_QWEN3}
BASE = train_bpe(
    ["hello world 12"],
    vocab_size=290,
    special_tokens=("<|im_start|>", "<|im_end|>"),
    whole_tokens=("<think>", "</think>"),
)


def with_template(text: str, base: Tokenizer = BASE) -> Tokenizer:
    return Tokenizer(replace(base.files, chat_template=text))


SOURCE = Conversations(source="none")
TOKENIZERS = {name: with_template(text) for name, text in TEMPLATES.items()}


def say(role: str, content: str) -> Message:
    return Message(role=role, content=content)  # type: ignore[arg-type]


def random_conversation(numbers: random.Random, thinking: bool) -> list[Message]:
    def words() -> str:
        return " ".join(numbers.choices(["one", "2", "tree", "é", "x = y"], k=numbers.randint(1, 4)))

    messages = [say("system", words())] if numbers.random() < 0.3 else []
    for _ in range(numbers.randint(1, 3)):
        messages.append(say("user", words()))
        thought = f"<think>\n{words()}\n</think>\n\n" if thinking else ""
        messages.append(say("assistant", thought + words()))
    return messages


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_answer_is_learnt_once_behind_the_prompt_of_a_rollout(name):
    tokenizer, numbers = TOKENIZERS[name], random.Random(name)
    for trial in range(40):
        thinking = trial % 2 == 0
        messages = random_conversation(numbers, thinking)
        places = [place for place, message in enumerate(messages) if message.role == "assistant"]
        chats = [*turns_of(Chat(messages=tuple(messages), thinking=thinking), tokenizer)]
        records = [(one.ids, one.loss_mask) for one in encode_chats(chats, SOURCE, tokenizer)]
        learnt = []
        for ids, mask in records:
            prompt = tokenizer.encode_prompt(messages[: places[len(learnt)]], thinking)
            assert ids[: len(prompt)] == prompt and not any(mask[: len(prompt)])
            learnt.append(tokenizer.decode([token for token, one in zip(ids, mask, strict=True) if one]))
        assert len(learnt) == len(places), "earlier turns are rewritten, so each has its own record"
        for text, place in zip(learnt, places, strict=True):
            said = text.replace("<|im_end|>", "").replace("<|end|>", "")
            whole = messages[place].content
            assert said == whole or "<think>\n" + said == whole
            assert ("</think>" in said) == thinking


@pytest.mark.parametrize("name", TEMPLATES)
def test_off_leaves_nothing_to_think_and_on_is_the_default(name):
    tokenizer, question = TOKENIZERS[name], [say("user", "2?")]
    on, off, unsaid = (
        tokenizer.decode(tokenizer.encode_prompt(question, mode)) for mode in (True, False, None)
    )
    assert off.endswith("<think>\n\n</think>\n\n") and on == unsaid and "</think>" not in on
    assert on.endswith("<think>\n") == (name != "like qwen3")


@pytest.mark.parametrize("name", BUILT_IN_TEMPLATES)
def test_words_of_system_and_user_switch_and_enable_thinking_false_counts_more(name):
    tokenizer = TOKENIZERS[name]

    def thinks(messages: list[Message], mode: bool | None = None) -> bool:
        return not tokenizer.decode(tokenizer.encode_prompt(messages, mode)).endswith("</think>\n\n")

    assert not thinks([say("system", "Be brief. /no_think"), say("user", "2?")])
    assert thinks([say("system", "/no_think"), say("user", "2? /think")])
    assert not thinks([say("user", "2? /think")], False)
    assert not thinks([say("user", "2? /no_think")], True)
    assert thinks([say("user", "see /no_thinking")])


def test_a_template_without_a_switch_is_refused():
    assert not with_template(CHAT_TEMPLATE).chat.has_switch
    with pytest.raises(ValueError, match=r"has no switch.*hybrid"):
        with_template(CHAT_TEMPLATE).encode_prompt([say("user", "2?")], True)


def test_templates_of_ours_go_by_name(tmp_path):
    BASE.save(tmp_path)
    assert BUILT_IN.keys() == {*BUILT_IN_TEMPLATES}
    for name in BUILT_IN_TEMPLATES:
        tokenizer = Tokenizer.load(tmp_path, template=name)
        tokenizer.save(tmp_path / name)
        assert Tokenizer.load(tmp_path / name).chat.has_switch
    train_bpe(["a"], vocab_size=300).save(tmp_path / "own")
    with pytest.raises(ValueError, match=r"writes <\|im_end\|>, which is no token here"):
        Tokenizer.load(tmp_path / "own", template="hybrid")


def test_closing_ids_open_what_nobody_had_time_to_open():
    ours, qwen = TOKENIZERS["hybrid"], TOKENIZERS["like qwen3"]
    end = "\n</think>\n\n"
    assert ours.encode_closing(None, end) == ()
    assert ours.decode(ours.encode_closing(0, end)) == qwen.decode(qwen.encode_closing(5, end)) == end
    assert qwen.decode(qwen.encode_closing(0, end)) == "<think>" + end
