"""Text ↔ ids, and conversations → ids with a loss mask.

A conversation is rendered to one text and tokenised once; the mask comes from character spans through the
tokenizer's offsets. Pieces are never tokenised on their own: " 4" alone and " 4" after "3" may differ.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import tokenizers

from foresail.records import Message
from foresail.tokenizer.chat import ChatTemplate, places_of_answers
from foresail.tokenizer.files import TokenizerFiles, read_files, write_files
from foresail.tokenizer.foreign_text import ForeignText, UnwritableText
from foresail.tokenizer.thinking import BUILT_IN, OPEN, mode_options
from foresail.tokenizer.token_bytes import token_bytes

SPECIAL_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token")
TEXTS_PER_CALL = 1000


class Tokenizer:
    """`Tokenizer.load(directory)` for a Hugging Face checkpoint, `train_bpe` for one of your own.

    `eos_ids` are all ids that end a turn: those the files name, and the one the chat template writes after an
    assistant's words (base checkpoints often name only the end of a document).
    """

    def __init__(self, files: TokenizerFiles, options: Mapping[str, Any] | None = None) -> None:
        self.files = files
        self._core = parse_definition(files.definition)
        self._unknown_id = unknown_id(self._core)
        self._text_start = leading_ids(self._core)
        # The post-processor would add special tokens, which templates do themselves, and trim offsets,
        # which hides where a token that begins with a space begins.
        self._core.post_processor = None
        self._foreign = ForeignText(self._core, self._unknown_id)
        specials = {name: token for name in SPECIAL_NAMES if (token := files.special_token(name))}
        self.chat = ChatTemplate(files.chat_template, specials, options) if files.chat_template else None
        self.eos_ids = self._find_eos_ids(specials.get("eos_token"))
        self.bos_id: int | None = self._core.token_to_id(specials.get("bos_token", ""))
        pad_id = self._core.token_to_id(specials.get("pad_token", ""))
        self.pad_id: int = self.eos_ids[0] if pad_id is None else pad_id
        # Ids lie below this; a model's embedding needs at least so many rows.
        self.vocab_size: int = max(self._core.get_vocab(with_added_tokens=True).values()) + 1

    @classmethod
    def load(
        cls,
        directory: str | Path,
        *,
        template: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read tokenizer.json and what stands beside it.

        `template`, a file or one of ours by its name, replaces the chat template there; `options` are further
        variables of the template.
        """
        try:
            files = read_files(Path(directory))
            if template is not None:
                files = replace(files, chat_template=read_template(template, files))
            return cls(files, options)
        except ValueError as error:
            raise ValueError(f"tokenizer in {directory}: {error}") from error

    def with_options(self, options: Mapping[str, Any]) -> Tokenizer:
        """The same with further variables for its chat template, such as tools."""
        current = {} if self.chat is None else self.chat.options
        return Tokenizer(self.files, {**current, **options})

    @cached_property
    def fingerprint(self) -> str:
        """Equal for tokenizers that write the same conversation with the same ids."""
        text = f"{self.files.definition}\x1f{self.files.chat_template}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]

    def padding_apart(self) -> Tokenizer:
        """The same, with a padding token that is no end-of-turn token, so that the last other token ends the
        answer.

        A tokenizer without any such token is returned unchanged.
        """
        ends = {self._core.id_to_token(token_id) for token_id in self.eos_ids}
        named = [self.files.special_token(name) for name in ("pad_token", "unk_token", "bos_token")]
        added = sorted(self._core.get_added_tokens_decoder().items())
        for token in (*named, *(token.content for _, token in added if token.special)):
            if token and token not in ends:
                config = {**self.files.config, "pad_token": token}
                return Tokenizer(replace(self.files, config=config), self.chat.options if self.chat else None)
        return self

    def save(self, directory: str | Path) -> None:
        """Write a directory that `load`, `transformers` and vLLM read."""
        write_files(self.files, self.eos_ids, Path(directory))

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, with no special tokens added."""
        return self._encode(text).ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return self._core.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def vocabulary(self) -> dict[str, int]:
        """The id of every token, special ones included."""
        return self._core.get_vocab(with_added_tokens=True)

    def token_id(self, token: str) -> int | None:
        """The id of a text that is one token by itself: of <think>, say, where the vocabulary has it."""
        token_id: int | None = self._core.token_to_id(token)
        return token_id

    def token_bytes(self) -> list[bytes]:
        """What each id adds to a text, in UTF-8; b"" where there is no such token."""
        return token_bytes(self._core)

    def special_tokens(self) -> tuple[str, ...]:
        """Texts that always become control tokens; untrusted text must not hold them."""
        return self._foreign.specials

    def encode_prompt(self, messages: Sequence[Message], thinking: bool | None = None) -> list[int]:
        """The ids after which the assistant's answer begins; `thinking` sets the template's switch."""
        variables = self._mode(thinking)
        return self.encode(self._require_chat().render(messages, add_generation_prompt=True, **variables))

    def encode_request(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        thinking: bool | None = None,
    ) -> list[int]:
        """`encode_prompt` for untrusted messages: special tokens in them lose their meaning.

        The template gets `tools`, a JSON schema each, where there are any. Raises UnwritableText where the template
        refuses these words, another ValueError where it refuses such messages.
        """
        schemas = self._foreign.without_specials(json.dumps(tools, ensure_ascii=False))
        variables = self._mode(thinking) | ({"tools": json.loads(schemas)} if tools else {})
        chat = self._require_chat()
        return self._write(
            messages, lambda plain: self.encode(chat.render(plain, add_generation_prompt=True, **variables))
        )

    def encode_prompts(
        self, conversations: Sequence[Sequence[Message]], modes: Sequence[bool | None] | None = None
    ) -> list[list[int]]:
        """`encode_prompt` of each, by all cores; `modes`: with thinking on or off."""
        chat = self._require_chat()
        texts = [
            chat.render(messages, add_generation_prompt=True, **self._mode(mode))
            for messages, mode in zip(conversations, modes or [None] * len(conversations), strict=True)
        ]
        encoded: list[list[int]] = []
        for text in texts:
            check_text(text)
        for first in range(0, len(texts), TEXTS_PER_CALL):
            some = self._core.encode_batch_fast(
                texts[first : first + TEXTS_PER_CALL], add_special_tokens=False
            )
            encoded += [encoding.ids for encoding in some]
        return [
            self.encode(text) if self._unknown_id in ids else ids  # which is an error that says where
            for text, ids in zip(texts, encoded, strict=True)
        ]

    def encode_closing(self, budget: int | None, text: str) -> tuple[int, ...]:
        """The ids that an engine inserts where thinking reaches its budget; empty without a budget.

        With a budget of 0 they also open the thinking, unless the prompt has.
        """
        if budget is None:
            return ()
        opened = budget > 0 or self._require_chat().opens_thinking
        return tuple(self.encode(text if opened else OPEN + text))

    def encode_next_turn(self, messages: Sequence[Message], *, ended: bool) -> list[int]:
        """The ids between an assistant's turn and its next one, with these messages in between.

        `ended` says that the turn has its end-of-turn token already. Special tokens in the messages' own text lose
        their meaning: what a tool says cannot end a turn or begin another. Errors as of `encode_request`.
        """
        chat = self._require_chat()

        def write(plain: Sequence[Message]) -> list[int]:
            text = chat.next_turn(plain)
            endings = [token for token in self._name(self.eos_ids) if text.startswith(token)]
            return self.encode(text[len(endings[0]) :] if ended and endings else text)

        return self._write(messages, write)

    def encode_text(self, text: str) -> list[int]:
        """The ids of untrusted text: special tokens in it lose their meaning."""
        return self.encode(self._foreign.clean(text))

    def _write(
        self, messages: Sequence[Message], write: Callable[[Sequence[Message]], list[int]]
    ) -> list[int]:
        """The text that `write` renders from untrusted messages."""
        try:
            return write(
                [replace(message, content=self._foreign.clean(message.content)) for message in messages]
            )
        except ValueError as error:
            write(
                [replace(message, content="4") for message in messages]
            )  # raises where the words do not matter
            raise UnwritableText(str(error)) from error

    def encode_conversation(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        learnt: Sequence[bool] | None = None,
        thinking: bool | None = None,
    ) -> tuple[list[int], list[int]]:
        """The ids, and 1 for each that the assistant is to produce: its words and its end-of-turn token.

        user "2+2", assistant "4" under ChatML:
            <|im_start|> user \\n 2 + 2 <|im_end|> \\n <|im_start|> assistant \\n 4 <|im_end|> \\n
                 0        0   0 0 0 0     0      0       0            0     0 1     1      0

        A lone assistant message is plain text: no template, all of it learnt, up to the end of sequence.
        The ids begin with `encode_prompt(messages[:i])` for every assistant message i, except where the
        tokenizer merges the prompt's last character with the answer's first; that token then stays outside
        the loss, which begins with the first token wholly inside the answer.

        `learnt` says of each message whether its words have a loss, in the place of every assistant message's; of
        other roles they are followed by what ends the turn, where that is an end-of-turn token. The template is
        told of `tools`, a JSON schema each, and of `thinking`, on or off.
        """
        learnt = [message.role == "assistant" for message in messages] if learnt is None else learnt
        if [message.role for message in messages] == ["assistant"]:
            ids, mask = self._encode_text(messages[0].content)
            return ids, mask if learnt[0] else [0] * len(ids)
        variables = ({"tools": [*tools]} if tools else {}) | self._mode(thinking)
        places = [place for place in places_of_answers(messages) if learnt[place]]
        text, starts = self._require_chat().locate(messages, places, **variables)
        if tools:
            self._check_tools_written(messages, text, thinking)
        encoding = self._encode(text)
        ids, offsets = encoding.ids, encoding.offsets  # each a new list whenever the library is asked
        token_starts = [start for start, _ in offsets]
        firsts = [bisect_left(token_starts, start) for start in starts]
        mask = [0] * len(ids)
        for place, start, first, limit in zip(places, starts, firsts, [*firsts, len(mask)][1:], strict=True):
            answer = messages[place]
            end = next((t for t in range(first, limit) if ids[t] in self.eos_ids), None)
            if end is None:
                raise ValueError(self._explain_endless(answer.content))
            if text[:start].rstrip().endswith(OPEN):  # by the prompt, so that the model need not
                answer = replace(answer, content=answer.content.lstrip().removeprefix(OPEN))
            is_last = place == places_of_answers(messages)[-1]
            self._check_kept(answer, text[start : token_starts[end]], is_last=is_last)
            mask[first : end + 1] = [1] * (end + 1 - first)
        for index, message in enumerate(messages):
            if learnt[index] and message.role != "assistant":
                span = self._require_chat().locate_words(messages, index, text, **variables)
                for token in self._tokens_inside(ids, offsets, span):
                    mask[token] = int(token > 0)  # nothing predicts the first token
        return ids, mask

    def keeps_turns(
        self, messages: Sequence[Message], thinking: bool | None, tools: Sequence[Mapping[str, Any]] = ()
    ) -> bool:
        """Whether every answer stands in the whole conversation as in one that ends with it."""
        variables = ({"tools": [*tools]} if tools else {}) | self._mode(thinking)
        return self._require_chat().keeps_turns(messages, **variables)

    def _tokens_inside(
        self, ids: Sequence[int], offsets: Sequence[tuple[int, int]], span: tuple[int, int]
    ) -> range:
        """Those wholly inside these characters, and the end-of-turn token right behind them."""
        first, end = (bisect_left(offsets, character, key=itemgetter(0)) for character in span)
        if end > first and offsets[end - 1][1] > span[1]:
            return range(first, end - 1)  # the last one holds something else as well
        ends_turn = end < len(ids) and offsets[end][0] == span[1] and ids[end] in self.eos_ids
        return range(first, end + ends_turn)

    def _encode_text(self, text: str) -> tuple[list[int], list[int]]:
        ids = [*self._text_start, *self.encode(text), self.eos_ids[0]]
        return ids, [0] + [1] * (len(ids) - 1)  # nothing predicts the first token

    def _encode(self, text: str) -> tokenizers.Encoding:
        check_text(text)
        encoding = self._core.encode(text, add_special_tokens=False)
        check_known(text, encoding, self._unknown_id)
        return encoding

    def _explain_endless(self, answer: str) -> str:
        return (
            f"nothing ends the assistant's turn {excerpt(answer)!r}: none of the end-of-turn tokens "
            f"{self._name(self.eos_ids)} follows it, so a model would never learn to stop; "
            "let the chat template write {{ eos_token }} after assistant messages"
        )

    def _check_tools_written(self, messages: Sequence[Message], text: str, thinking: bool | None) -> None:
        if self._require_chat().render(messages, add_generation_prompt=False, **self._mode(thinking)) == text:
            raise ValueError(
                "the chat template does not write the tools that the row has, so a model would not see them; set "
                "model.chat_template to one that does, or remove the column tools"
            )

    def _check_kept(self, message: Message, rendered: str, is_last: bool) -> None:
        """Raise if the text to train on lacks a part of the assistant's words or calls."""
        # Some templates drop the thinking of earlier turns, and many trim whitespace: both are accepted.
        answer, calls = message.content, message.extra.get("tool_calls", ())
        expected_text = answer if is_last else answer.rpartition("</think>")[2]
        words = squeeze(rendered)
        if lost := [call["function"]["name"] for call in calls if not holds_call(rendered, call["function"])]:
            raise ValueError(
                f"the chat template does not write the call of {lost[0]}: the message renders as "
                f"{excerpt(rendered)!r}; set model.chat_template to one that writes tool_calls"
            )
        if squeeze(expected_text) in words if calls else words.endswith(squeeze(expected_text)):
            return
        if held := [token for token in self._name(self.eos_ids) if token in answer]:
            raise ValueError(f"the assistant message {excerpt(answer)!r} holds {held[0]!r}; remove it")
        raise ValueError(
            f"the chat template does not keep the assistant message {excerpt(answer)!r}: it renders as "
            f"{excerpt(rendered)!r}. Use a template that keeps assistant messages whole (put it in "
            "chat_template.jinja); templates of thinking models often drop what stands before </think>"
        )

    def _find_eos_ids(self, eos_token: str | None) -> tuple[int, ...]:
        eos_ids = [self._id_of(eos_token)] if eos_token else []
        eos_ids += [eos for eos in self.files.model_eos if self._core.id_to_token(eos) is not None]
        ending = self.chat.turn_ending().lstrip() if self.chat else ""
        for token_id, token in sorted(self._core.get_added_tokens_decoder().items()):
            if token.special and ending.startswith(token.content):
                eos_ids.append(token_id)
        if not eos_ids:
            raise ValueError("no end-of-sequence token is named; set eos_token in tokenizer_config.json")
        return tuple(dict.fromkeys(eos_ids))

    def _id_of(self, token: str) -> int:
        token_id = self._core.token_to_id(token)
        if token_id is None:
            raise ValueError(f"tokenizer_config.json names {token!r}, which tokenizer.json does not hold")
        return token_id

    def _name(self, ids: Sequence[int]) -> list[str]:
        return [self._core.id_to_token(token_id) or f"id {token_id}" for token_id in ids]

    def _mode(self, thinking: bool | None) -> dict[str, Any]:
        """The template's variables for the mode, where one is set."""
        if thinking is not None and not self._require_chat().has_switch:
            raise ValueError(
                "the chat template has no switch: its prompts are the same with thinking on and off "
                '(enable_thinking). Use one that has, like ours (model.chat_template = "hybrid"), or leave '
                "thinking unset"
            )
        return mode_options(thinking)

    def _require_chat(self) -> ChatTemplate:
        if self.chat is None:
            raise ValueError(
                "this tokenizer has no chat template; put one in chat_template.jinja beside tokenizer.json"
            )
        return self.chat


def read_template(template: str | Path, files: TokenizerFiles) -> str:
    """The template in a file, or one of ours by its name."""
    if str(template) not in BUILT_IN:
        return Path(template).read_text(encoding="utf-8")
    text, token = BUILT_IN[str(template)]
    if json.dumps(token) not in files.definition:
        raise ValueError(
            f"the chat template {template!r} writes {token}, which is no token here; use another of "
            f"{', '.join(BUILT_IN)}, or a file"
        )
    return text


def parse_definition(definition: str) -> tokenizers.Tokenizer:
    try:
        core = tokenizers.Tokenizer.from_str(definition)
        core.no_truncation()
        core.no_padding()
        core.encode("a")
    except BaseException as error:  # the library raises bare Exception, and where it panics not even that
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"tokenizer.json is not a tokenizer definition ({error}); fetch it again") from error
    return core


def leading_ids(core: tokenizers.Tokenizer) -> list[int]:
    """The ids that the tokenizer puts before every text: [bos] for Llama, nothing for Qwen."""
    alone, marked = core.encode("a", add_special_tokens=False).ids, core.encode("a").ids
    where = next((i for i in range(len(marked)) if marked[i : i + len(alone)] == alone), 0)
    return marked[:where]


def unknown_id(core: tokenizers.Tokenizer) -> int | None:
    """The id of the unknown token; byte-level tokenizers rarely have one."""
    token = getattr(core.model, "unk_token", None)
    return core.token_to_id(token) if token else None


def check_known(text: str, encoding: tokenizers.Encoding, unknown: int | None) -> None:
    """An error where a part of the text became the unknown token."""
    if unknown is not None and unknown in encoding.ids:
        start, end = encoding.offsets[encoding.ids.index(unknown)]
        raise ValueError(
            f"the tokenizer has no token for {text[start:end]!r} in {excerpt(text, start)!r}; train it on texts "
            'that hold it, or with alphabet="bytes", which knows every character'
        )


def check_text(text: str) -> None:
    """Raise if the text has lone surrogates, which JSON can hold and no tokenizer can encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise ValueError(f"{half} in {excerpt(text, error.start)!r} is half a character; remove it") from None


def holds_call(text: str, function: Mapping[str, Any]) -> bool:
    """Whether the text holds the call's name and every argument, plain or as JSON."""

    def stands(value: Any) -> bool:
        if isinstance(value, dict | list):
            return all(map(stands, value.values() if isinstance(value, dict) else value))
        as_json = json.dumps(value, ensure_ascii=False)
        forms = (as_json, json.dumps(value), str(value), as_json.strip('"'))
        return any(form in text for form in forms)

    return function["name"] in text and stands(function["arguments"])


def squeeze(text: str) -> str:
    return "".join(text.split())


def excerpt(text: str, near: int = 0) -> str:
    start = max(0, near - 20)
    return text[start : start + 40]
