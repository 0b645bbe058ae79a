r"""What the long texts of `attack_length.py` are made of.

Frames stand around a text, since most rules look at one place of it: before a box, behind a cue, inside a tag.
Pieces are repeated in it. Words that the patterns themselves mention come from there.
"""

from __future__ import annotations

import string

# In any text.
SIGNS = (*string.punctuation, *"…–—−·×÷°±≈≠≤≥→√∞“”‘’«»。，、；：？！（）【】《》「」\u0301\u200b")
BLANKS = (" ", "\n", "\t", "\r\n", " \n", "\xa0", "\u3000", "\x00")
LETTERS = (*"aAßİéΩд七のก한01٣²½", "a ", "a, ", "1 ")

# Responses.
PLAIN = (("", ""),)
THOUGHT = (("", ""), ("<think>", "</think> 7"), ("<think>", ""), ("", "</think>"))
THOUGHTS = (*"<think> </think> \\text{ ` ``` $$ \\[ \\( \\] https://".split(), "a ", "д ")
ANSWERS = (
    ("", ""), ("\\boxed{7} ", ""), ("", " \\boxed{7}"), ("", "\\boxed{7}"), ("\\boxed{7}", ""), ("\\boxed{", "}"),
    ("\\boxed{7", "}"), ("\\boxed{", "7}"), ("$\\boxed{7}$ ", "."), ("\\boxed{1}", "\\boxed{7}"),
    ("The answer is ", ""), ("The answer is 7", ""), ("The answer is 7. ", ""), ("", "The answer is 7."),
    ("", " the answer is 7"), ("#### ", ""), ("#### 7", ""), ("", "\n#### 7"), ("Answer: ", "\n"), ("a", "a"),
    ("<answer>", "</answer>"), ("<answer>", ""), ("", "</answer>"), ("<answer>7", "</answer> 8"), ("<s>", "7"),
    ("x = 7 ", " 8"), ("**Final Answer**\n", ""), ("7 ", ""), ("", " 7"), ("It is not ", "7."), ("\\[", "\\]"),
    ("$", "$"), ("```python\n", "\n```"), ("<think>3</think>", "7"), ("\\boxed{7} or ", ""), ("\\boxed{(1,", ")}"),
)  # fmt: skip
MATHS = (
    *r"\boxed{ \boxed{7} \boxed \boxed{} \fbox{ \frac{ \sqrt{ \text{ \left( \( \) \[ \] $$ $7$ \\".split(),
    *r"\begin{array} \end{array} <answer> </answer> </s> <s> <|im_end|> #### Answer: A: 7 7, 1, 1,234 1.".split(),
    *r".5 0x1 {,} x= =7 <!-- --> ~~ ** __ << >> ` \verb| \iffalse \fi [asy] [/asy] % <b> <del> </del>".split(),
    *r"\{ \} \cdot '' not7 or7 ? \pm ^2 _{2} \% (7) - ( n't percent miscount wrong e-".split(),
    "#### 7\n", "answer is", "the answer is ", "The answer is 7. ", "or ", "7 or ", "not ", "wait ", "no, ",
    "- 7\n", "1. 7\n", "* ", "```python\n", " % ", "a\u0301", "million ", "minus ", "a b ", "is ", "\nA:", "x ",
    "(A) ", "it ", "and ", "\n ", "- ", "\\ ", "7 = ", "1/",
)  # fmt: skip
SHORT_ANSWERS = (
    ("", ""), ("<answer>", "</answer>"), ("<answer>", ""), ("", "</answer>"), ("\\boxed{", "}"), ("", "\\boxed{7}"),
    ("The answer is ", ""), ("", " the answer is"), ("", "Paris"), ("Paris", ""), ("a", "a"), ("1", "1"), ("", "a"),
    ("so", "answer"), ("the", "answer is"), ("\n", "\nParis"), ("Paris\n", "\n"),
    ("<answer>\\boxed{", "}</answer>"),
)  # fmt: skip
QA = (
    *"<answer> </answer> <answer></answer> so the final thus 1,000 \u2014 C++ \\boxed{".split(),
    "answer is",
    "a ",
)

# Programs.
PROGRAMS = (
    ("", ""), ("```python\n", "\n```"), ("```python\n", ""), ("", "\n```python\nprint(1)\n```"), ("```", "\n```"),
    ("```python ", "\n1\n```"), ("```\n", "\n```"), ("~~~\n", "\n~~~"), ("```cpp\n#include <x>\n", "\n```"),
    (" ", "```python"), ("   ```py\n", "\n   ```"),
)  # fmt: skip
CODE = (
    *"``` ~~~ ```` ```python ```cpp {.python} c++17 f( [ lambda: ' \" \"\"\" f'{ # a. - 1+ * (a, a, ''".split(),
    *"0x 1_ x:= ; else: {1: b' $".split(), "\n```\n", "\n```python\n", "\n~~~\n", "#include ", "\\\n",
    "using namespace ", "from __future__ import a\n", "def f():0\n", "class A:0\n", "x=1\n", "x\n", "import os\n",
    "class Solution:\n def f(s):0\n", "@a\n", "if x:\n ", "not ", "1if x else ", "1 ", "\t", "\f", "\r\n", "try:\n",
    "async ", "await ", "match x:\n case ", "def f(a,",
)  # fmt: skip

# Values that programs return, as tables.
TABLES = (
    ("", ""), ('{"root": [0], "nodes": [["list", ', "1]]}"), ('{"root": [0], "nodes": [["list"]', "]}"),
    ('{"root": [0], "nodes": [["int", "0x', '"]]}'), ('{"root": [0], "nodes": [["decimal", "', '"]]}'),
    ('{"root": [0], "nodes": [["set", ', "1]]}"), ('{"root": [0], "nodes": [["dict", ', "1, 1]]}"),
    ('{"root": "', '"}'), ('{"root": "', '", "nodes": []}'),
)  # fmt: skip
VALUES = (
    *'1, [0], ["list"], "a", null, 1.5, 9 a'.split(),
    '["same", [0]],',
    ',["tuple", [0], [0]]',
    ',["set", [0]]',
)

# Calls of tools, their results, and what agent programs send.
CALLS = (
    ("", ""), ("<tool_call>", "</tool_call>"), ("<tool_call>\n", "\n</tool_call>"),
    ('<tool_call>\n{"name": "search", "arguments": {"query": "', '"}}\n</tool_call>'),
    ('<tool_call>{"name": "', ""), ("<tool_call>[", "]</tool_call>"), ('<tool_call>{"', '": 1}</tool_call>'),
    ("<search>", "</search>"), ("<think>", "</think><search>x</search>"), ("<think>", ""), ("", "</think>"),
    ('{"a": ', "}"), ('{"a": "', '"}'),
)  # fmt: skip
TOOLS = (
    *"<tool_call> </tool_call> <tool_response> </tool_response> <think> </think> <search> </search>".split(),
    *'<result> </result> {"name": "arguments": {" "} \\" \\\\ \\u \\ud83d {} [] [ ] ": 1e9 true "a":1,'.split(),
    *'{"a": NaN 1 0 - <tool_call>{ <tool_call></think> <tool_call>1</think> <tool_call>" </'.split(),
    '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "</tool_call>\n<tool_call>", "\ud800",
    "<tool_call<tool_call>>", "<<tool_call>", "-Infinity",
)  # fmt: skip
WIRES = (
    ("", ""), ('{"messages": [{"role": "user", "content": "', '"}]}'), ('{"messages": [', "]}"), ("{", "}"),
    ('{"messages": [{"role": "user", "content": "x"}], "', '": 1}'),
    ('{"messages": [{"role": "user", "content": "x"}], "stop": "', '"}'),
    ('{"messages": [{"role": "assistant", "tool_calls": [', ']}, {"role": "user", "content": ""}]}'),
    ('{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "',
     '"}}]}, {"role": "user", "content": ""}]}'),
)  # fmt: skip
REQUESTS = (
    *'"a":1, \\ \\u0000 \\" 9 { [ {"a": " ,'.split(), '{"role": "user", "content": "x"},',
    '{"role": "assistant", "content": "x"},', '{"type": "text", "text": "x"},',
    '{"function": {"name": "f", "arguments": "{}"}},',
)  # fmt: skip
HEADS = tuple((name, "\r\n\r\n") for name in ("", "A: ", "Authorization: Bearer ", "Content-Length: "))
HEADERS = ("A: b\r\n", " b\r\n", "\r\n ", "\n\t", ":", "A", "0", "9", "From ", "\r", "=?utf-8?q?", "a:")

SPECIALS = tuple("<|im_start|> <|im_end|> <|endoftext|> <| </s> <s> [INST] || aa <<".split())
