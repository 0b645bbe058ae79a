"""Conversations → ids and masks, against transformers and against the walls of the architecture page."""

import json
from pathlib import Path

import pytest
from chat_templates import CHATML, DROPPING, FORGETFUL, LLAMA3, MISTRAL, without_tags
from templated_tokenizers import CHAT, REAL, TURNS, build, chatml, definition, real
from transformers import PreTrainedTokenizerFast

from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer


def pieces(tokenizer: Tokenizer, messages: tuple[Message, ...]) -> list[str]:
    """The runs of tokens under the mask, as text."""
    ids, mask = tokenizer.encode_conversation(messages)
    runs: list[list[int]] = []
    for index, (token_id, on) in enumerate(zip(ids, mask, strict=True)):
        if on and (index == 0 or not mask[index - 1]):
            runs.append([])
        if on:
            runs[-1].append(token_id)
    return [tokenizer.decode(run) for run in runs]


@pytest.mark.parametrize("name", REAL)
def test_ids_and_masks_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    template, folder, bos, eos = REAL[name]
    (tmp_path / "tokenizer.json").write_text(definition(folder), encoding="utf-8")
    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), bos_token=bos, eos_token=eos, chat_template=template
    )
    turns = [{"role": role, "content": content} for role, content in TURNS]
    expected = theirs.apply_chat_template(turns, return_dict=True, return_assistant_tokens_mask=True)
    ids, mask = real(name).encode_conversation(CHAT)
    assert ids == list(expected["input_ids"])
    assert mask == list(expected["assistant_masks"])
    prompt = theirs.apply_chat_template(turns[:-1], add_generation_prompt=True, return_dict=True)["input_ids"]
    assert real(name).encode_prompt(CHAT[:-1]) == list(prompt)


@pytest.mark.parametrize("name", REAL)
def test_prompts_are_prefixes_of_the_conversation(name: str) -> None:
    ids, mask = real(name).encode_conversation(CHAT)
    for turn in (1, 3):
        prompt = real(name).encode_prompt(CHAT[:turn])
        assert ids[: len(prompt)] == prompt
        assert mask[len(prompt) - 1 : len(prompt) + 1] == [0, 1]


@pytest.mark.parametrize("name", ["chatml", "llama3"])
def test_mask_covers_the_words_and_the_end_of_turn(name: str) -> None:
    assert pieces(real(name), CHAT) == [CHAT[1].content + REAL[name][3], CHAT[3].content + REAL[name][3]]


def test_generation_tag_changes_nothing() -> None:
    assert chatml(CHATML).encode_conversation(CHAT) == chatml(without_tags(CHATML)).encode_conversation(CHAT)


def test_template_s_own_end_of_turn_counts_as_an_end() -> None:
    # Qwen2.5's base checkpoint names only <|endoftext|>, yet its template closes turns with <|im_end|>.
    tokenizer = build(definition("qwen2_5"), CHATML, eos="<|endoftext|>")
    assert [tokenizer.decode([eos]) for eos in tokenizer.eos_ids] == ["<|endoftext|>", "<|im_end|>"]
    assert pieces(tokenizer, CHAT)[1] == CHAT[3].content + "<|im_end|>"


def test_token_across_the_boundary_stays_outside_the_loss() -> None:
    messages = (Message(role="user", content="hi"), Message(role="assistant", content="\n\nwell"))
    tokenizer = real("chatml")
    ids, mask = tokenizer.encode_conversation(messages)
    prompt = tokenizer.encode_prompt(messages[:1])
    assert ids[: len(prompt)] != prompt, "this case is to merge the prompt's newline with the answer's"
    assert pieces(tokenizer, messages) == ["well<|im_end|>"]
    assert tokenizer.decode([ids[mask.index(1) - 1]]) == "\n\n\n"


def test_leading_space_merged_from_the_prompt_stays_outside_the_loss() -> None:
    # Official Llama 3 files trim spaces off offsets; " well" must not seem to begin at its w.
    trimming = json.loads(definition("llama3"))
    trimming["post_processor"]["trim_offsets"] = True
    template = "{% for m in messages %}{{ m.role + ': ' + m.content + '<|eot_id|>' }}{% endfor %}"
    template += "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
    tokenizer = build(json.dumps(trimming), template, eos="<|eot_id|>")
    messages = (Message(role="user", content="hi"), Message(role="assistant", content="well done"))
    assert pieces(tokenizer, messages) == [" done<|eot_id|>"]


def test_thinking_dropped_from_earlier_turns_is_accepted() -> None:
    messages = (
        Message(role="user", content="a"),
        Message(role="assistant", content="<think>b</think>c"),
        Message(role="user", content="d"),
        Message(role="assistant", content="<think>e</think>f"),
    )
    assert pieces(chatml(FORGETFUL), messages) == ["c<|im_end|>", "<think>e</think>f<|im_end|>"]


def test_lone_assistant_message_is_plain_text() -> None:
    tokenizer = build(definition("llama3"), LLAMA3, "<|begin_of_text|>", "<|end_of_text|>")
    ids, mask = tokenizer.encode_conversation([Message(role="assistant", content="Once upon")])
    # This shared file adds no bos of its own accord, so the text's first token goes unpredicted.
    assert tokenizer.decode(ids) == "Once upon<|end_of_text|>"
    assert mask == [0, 1, 1]
    starting = real("zephyr")
    ids, mask = starting.encode_conversation([Message(role="assistant", content="Once upon")])
    assert starting.decode(ids) == "<bos>Once upon<eos>"
    assert mask == [0, 1, 1, 1]


def test_dropped_thinking_in_the_last_turn_is_refused() -> None:
    messages = (Message(role="user", content="a"), Message(role="assistant", content="<think>b</think>c"))
    with pytest.raises(
        ValueError, match=r"does not keep the assistant message '<think>b</think>c'.*renders as 'c'"
    ):
        chatml(DROPPING).encode_conversation(messages)


def test_end_of_turn_inside_an_answer_is_refused() -> None:
    messages = (Message(role="user", content="a"), Message(role="assistant", content="b<|im_end|>c"))
    with pytest.raises(ValueError, match=r"holds '<\|im_end\|>'; remove it"):
        chatml().encode_conversation(messages)


def test_template_that_never_ends_a_turn_is_refused() -> None:
    endless = "{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}"
    messages = (Message(role="user", content="a"), Message(role="assistant", content="b"))
    with pytest.raises(ValueError, match=r"never learn to stop; let the chat template write {{ eos_token }}"):
        chatml(endless).encode_conversation(messages)


def test_template_that_rewrites_the_prompt_is_refused() -> None:
    counting = "{{ messages | length }}" + CHATML
    with pytest.raises(ValueError, match=r"before assistant message 1 differently.*split the conversation"):
        chatml(counting).encode_conversation(CHAT[:2])


def test_refusal_of_a_template_names_the_roles() -> None:
    with pytest.raises(ValueError, match=r"refuses a conversation of \(user, user\): roles must alternate"):
        chatml(MISTRAL).encode_prompt([CHAT[0], CHAT[2]])


def test_absent_template_says_where_to_put_one() -> None:
    tokenizer = build(chatml().files.definition, None, eos="<|end|>")
    with pytest.raises(ValueError, match=r"no chat template; put one in chat_template\.jinja"):
        tokenizer.encode_prompt(CHAT[:1])
