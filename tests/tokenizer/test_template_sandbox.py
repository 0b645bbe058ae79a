"""What templates may use, and what they may not."""

from datetime import datetime

import pytest

from foresail.records import Message
from foresail.tokenizer.chat import ChatTemplate

HI = [Message(role="user", content="hi")]


def render(source: str) -> str:
    return ChatTemplate(source, {"bos_token": "<s>"}).render(HI, add_generation_prompt=False)


def test_json_is_not_escaped_for_html() -> None:
    assert render("{{ {'a': '<é&>'} | tojson }}") == '{"a": "<é&>"}'
    assert render("{{ [1] | tojson(indent=2) }}") == "[\n  1\n]"


def test_loop_controls_date_and_special_tokens() -> None:
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert render("{{ strftime_now('%Y') }}") == str(datetime.now().year)
    assert render("{{ bos_token }}{{ pad_token }}") == "<s>"


def test_blocks_leave_no_blank_lines() -> None:
    assert render("{% if true %}\n  {% set x = 1 %}\na\n{% endif %}\nb") == "a\nb"


def test_sandbox_keeps_templates_from_python() -> None:
    with pytest.raises(ValueError, match="unsafe"):
        render("{{ messages.__class__.__mro__ }}")
    with pytest.raises(ValueError, match=r"unsafe|not safely callable"):
        render("{{ messages.append(1) }}")


def test_syntax_error_names_the_line() -> None:
    with pytest.raises(ValueError, match="not valid Jinja, line 2"):
        render("\n{% if %}")
