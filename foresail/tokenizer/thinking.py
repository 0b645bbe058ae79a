r"""Hybrid thinking in chat templates: the switch, the tags, and templates of our own for models without one.

    ChatML, thinking on     …<|im_start|>assistant\n<think>\n        and the model goes on
    ChatML, thinking off    …<|im_start|>assistant\n<think>\n\n</think>\n\n

As in Qwen3, the variable `enable_thinking` sets the mode. In our templates the last "/think" or "/no_think" in a
system or user message sets it as well; `enable_thinking=false` overrides these. Earlier turns are shown without
their thinking.
"""

from __future__ import annotations

from typing import Any

OPEN, CLOSE = "<think>", "</think>"

# %OPEN_TURN% and the other marks are filled in below.
HYBRID = """\
{%- set now = namespace(thinking=true, last_user=-1) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}{%- set now.last_user = loop.index0 -%}{%- endif -%}
    {%- if message.role in ('system', 'user') -%}
        {%- for word in message.content.split() -%}
            {%- if word == '/no_think' -%}{%- set now.thinking = false -%}{%- endif -%}
            {%- if word == '/think' -%}{%- set now.thinking = true -%}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endfor -%}
{%- if enable_thinking is defined and not enable_thinking -%}{%- set now.thinking = false -%}{%- endif -%}
{%- for message in messages -%}
    {{- %OPEN_TURN% -}}
    {%- if message.role == 'assistant' -%}
        {%- set answer = message.content.split('</think>')[-1].lstrip('\\n') -%}
        {%- if loop.index0 > now.last_user -%}
            {%- set thought = '' -%}
            {%- if '</think>' in message.content -%}
                {%- set thought = message.content.split('</think>')[0].split('<think>')[-1].strip('\\n') -%}
            {%- endif -%}
            {{- '<think>\\n' + thought + '\\n</think>\\n\\n' -}}
        {%- endif -%}
        {{- answer + %CLOSE_ANSWER% -}}
    {%- else -%}
        {{- message.content + %CLOSE_TURN% -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- %OPEN_ANSWER% + '<think>\\n' -}}
    {%- if not now.thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""
CHATML = {
    "%OPEN_TURN%": "'<|im_start|>' + message.role + '\\n'",
    "%CLOSE_TURN%": "'<|im_end|>\\n'",
    "%CLOSE_ANSWER%": "'<|im_end|>\\n'",
    "%OPEN_ANSWER%": "'<|im_start|>assistant\\n'",
}
SHORT = {
    "%OPEN_TURN%": "'<|' + message.role + '|>'",
    "%CLOSE_TURN%": "''",
    "%CLOSE_ANSWER%": "eos_token",
    "%OPEN_ANSWER%": "'<|assistant|>'",
}


def fill_in(template: str, marks: dict[str, str]) -> str:
    for mark, text in marks.items():
        template = template.replace(mark, text)
    return template


# By the name that `model.chat_template` gives them: the template, and a token it cannot do without.
# hybrid is ChatML; hybrid-short is for tokenizers of `train_bpe`, whose turns begin with one token.
BUILT_IN = {
    "hybrid": (fill_in(HYBRID, CHATML), "<|im_end|>"),
    "hybrid-short": (fill_in(HYBRID, SHORT), "<|assistant|>"),
}


def mode_options(thinking: bool | None) -> dict[str, Any]:
    """The variables of a template: Qwen3's name, and the one of DeepSeek and Granite."""
    return {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
