"""Tasks as plain text, for files: what goes in comes out as it was."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.judge.programs.program import AssertTest, CallTest, OutputComparison, StdinTest
from foresail.judge.programs.rows import read_task
from foresail.judge.programs.task import CodeTask, encode_task, read_literal, write_literal

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**20_000), 2**20_000),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)
hashable = st.recursive(atoms, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    st.one_of(atoms, st.sets(hashable, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=3),
    ),
    max_leaves=8,
)


def shape(value: object) -> object:
    """The value with its types: 1, 1.0 and True are equal, and -0.0 equals 0.0."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(part) for part in value]
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, float):
        return "float", math.copysign(1, value), value
    return type(value).__name__, value


@given(values)
def test_literals_come_back_as_they_were(value: object):
    assert shape(read_literal(write_literal(value))) == shape(value)


@pytest.mark.parametrize("value", [math.nan, [math.nan], object(), range(3), frozenset({1})])
def test_what_is_not_plain_is_refused(value: object):
    with pytest.raises(ValueError, match=r"plain data|NaN"):
        write_literal(value)


@given(st.lists(values, max_size=3), values, st.dictionaries(st.text(max_size=3), values, max_size=2))
def test_a_task_survives_json(arguments: list, expected: object, keywords: dict):
    task = CodeTask(
        tests=(
            CallTest(
                function="f", arguments=tuple(arguments), keywords=keywords, expected=expected, absolute=0.5
            ),
            StdinTest(input="1", output="2", comparison=OutputComparison(mode="numbers", relative=0.1)),
            AssertTest(script="assert f"),
        ),
        prelude="import math",
        levels=(1, 0, 0),
    )
    assert read_task(json.loads(json.dumps(encode_task(task)))) == task
