"""Chat templates: messages rendered as one text, with the place of each assistant turn.

Templates are Jinja and come from strangers' checkpoints, so they run in a sandbox. It offers what that of
`transformers` offers, and so renders the same text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from os.path import commonprefix
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from foresail.records import Message
from foresail.tokenizer.thinking import OPEN, mode_options

TRIAL = Message(role="user", content="trial")
# Two answers that differ in their first and in their last character.
TRIAL_ANSWERS = ("yes", "no")


class ChatTemplate:
    """A compiled template with the special tokens it may name (`{{ eos_token }}`)."""

    def __init__(
        self, source: str, special_tokens: dict[str, str], options: Mapping[str, Any] | None = None
    ) -> None:
        """`options` are further variables of the template, such as enable_thinking or tools."""
        self.source = source
        self.special_tokens = special_tokens
        self.options = dict(options or {})
        try:
            self._compiled = sandbox().from_string(source)
        except TemplateSyntaxError as error:
            raise ValueError(f"the chat template is not valid Jinja, line {error.lineno}: {error}") from error
        except Exception as error:  # too deeply nested, a constant part that cannot be computed, …
            raise ValueError(f"the chat template cannot be compiled: {describe(error)}") from error

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool, **variables: Any) -> str:
        """The conversation as text; with `add_generation_prompt` up to where the assistant would go on.

        `variables` override the template's own options.
        """
        turns = [{"role": message.role, "content": message.content, **message.extra} for message in messages]
        try:
            return self._compiled.render(
                {
                    "messages": turns,
                    "tools": None,
                    "documents": None,
                    "add_generation_prompt": add_generation_prompt,
                    **self.special_tokens,
                    **self.options,
                    **variables,
                }
            )
        except Exception as error:  # the template's own refusal, or any error in its code
            roles = ", ".join(message.role for message in messages)
            raise ValueError(
                f"the chat template refuses a conversation of ({roles}): {describe(error)}"
            ) from error

    def locate(
        self, messages: Sequence[Message], answers: Sequence[int] | None = None, **variables: Any
    ) -> tuple[str, list[int]]:
        """The whole text, and for each of these assistant messages, or all, the character where its part begins.

        For ChatML "…<|im_start|>assistant\\nhello<|im_end|>\\n" that is the h of hello: a turn begins where a
        rollout would begin, right after the generation prompt.
        """
        text = self.render(messages, add_generation_prompt=False, **variables)
        starts = []
        for index in places_of_answers(messages) if answers is None else answers:
            prompt = self.render(messages[:index], add_generation_prompt=True, **variables)
            if not text.startswith(prompt):
                raise ValueError(explain_mismatch(text, prompt, index))
            starts.append(len(prompt))
        return text, starts

    def keeps_turns(self, messages: Sequence[Message], **variables: Any) -> bool:
        """Whether all assistant messages stand in the whole text as in one that ends with them."""
        text = self.render(messages, add_generation_prompt=False, **variables)
        return all(
            text.startswith(self.render(messages[: index + 1], add_generation_prompt=False, **variables))
            for index in places_of_answers(messages)
        )

    @cached_property
    def opens_thinking(self) -> bool:
        """Whether a prompt with thinking on ends with the opening tag, so that the model need not write it."""
        variables = mode_options(True) if self.has_switch else {}
        return self.render([TRIAL], add_generation_prompt=True, **variables).rstrip().endswith(OPEN)

    @cached_property
    def has_switch(self) -> bool:
        """Whether prompts differ with thinking on and off."""
        try:
            on, off = (
                self.render([TRIAL], add_generation_prompt=True, **mode_options(mode))
                for mode in (True, False)
            )
        except ValueError:
            return False
        return on != off

    def locate_words(
        self, messages: Sequence[Message], index: int, text: str, **variables: Any
    ) -> tuple[int, int]:
        """The first and last character of a message's words, for a message that is not the assistant's.

        They are searched in what the message adds to those before it.
        """
        role, words = messages[index].role, messages[index].content.strip()
        before = self.render(messages[:index], add_generation_prompt=False, **variables) if index else ""
        after = self.render(messages[: index + 1], add_generation_prompt=False, **variables)
        start = after.find(words, len(before))
        if not after.startswith(before) or start < 0 or not text.startswith(after[: start + len(words)]):
            raise ValueError(
                f"the chat template does not write message {index} ({role}) as a part of its own, so its words "
                f"cannot be told apart; leave {role} out of data.roles"
            )
        return start, start + len(words)

    def turn_ending(self) -> str:
        """What the template writes after an assistant's words: "<|im_end|>\\n" for ChatML.

        Empty where the template refuses the trial conversation or does not write the words as they are.
        """
        try:
            return self._behind_answer((), add_generation_prompt=False)
        except ValueError:
            return ""

    def next_turn(self, messages: Sequence[Message]) -> str:
        """The text between an assistant's words and its next words, with these messages in between.

        For ChatML and a tool's "4": "<|im_end|>\\n<|im_start|>tool\\n4<|im_end|>\\n<|im_start|>assistant\\n".
        """
        return self._behind_answer(messages, add_generation_prompt=True)

    def _behind_answer(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """The text after an assistant's words: the common end of two renderings with different answers.

        A search for the words could fail, since the messages may hold any text.
        """
        texts = [
            self.render(
                [TRIAL, Message(role="assistant", content=answer), *messages],
                add_generation_prompt=add_generation_prompt,
            )
            for answer in TRIAL_ANSWERS
        ]
        before, behind = common_start(texts), common_start([text[::-1] for text in texts])[::-1]
        if texts != [f"{before}{answer}{behind}" for answer in TRIAL_ANSWERS]:
            raise ValueError(
                "the chat template does not write an assistant's words as they are once something follows them, so "
                "turns cannot be put together; use a template that does (model.chat_template)"
            )
        return behind


def common_start(texts: Sequence[str]) -> str:
    """common_start(["abc", "abd"]) -> "ab"."""
    return commonprefix([*texts])  # noqa: RUF071 (by characters is meant)


def places_of_answers(messages: Sequence[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.role == "assistant"]


def describe(error: Exception) -> str:
    """A template's own message as it is; other errors with their kind: "TypeError: …"."""
    return str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"


def explain_mismatch(text: str, prompt: str, index: int) -> str:
    same = next((i for i, (a, b) in enumerate(zip(text, prompt, strict=False)) if a != b), len(text))
    before, after = prompt[same : same + 40], text[same : same + 40]
    return (
        f"the chat template renders the text before assistant message {index} differently once that message "
        f"follows: {before!r} in the prompt, {after!r} in the conversation. So a model would be trained on a "
        "prompt that it never gets. Use a template that keeps earlier text unchanged (put it in "
        "chat_template.jinja), or split the conversation into single turns (data.thinking = true or false does "
        "that, for templates of thinking models)"
    )


def sandbox() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationTag]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


class GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`, which marks assistant turns for `transformers`: passed through.

    Spans are found without it, so that templates with and without the tag train alike.
    """

    tags = {"generation"}  # noqa: RUF012 (Jinja's own convention)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    """Jinja's own filter escapes `<` and `&` for HTML; prompts want them as they are."""
    return json.dumps(value, ensure_ascii=options.pop("ensure_ascii", False), indent=indent, **options)


def refuse(message: str) -> NoReturn:
    raise TemplateError(message)
