"""No text takes more time to read than its length accounts for: 100 kB of every sign, to all that reads."""

import random
import re
import signal
import string

import attack_length
import pytest
from attack_length import Text, cpu_seconds, growth, is_find, mixture, pieces_of
from attack_pieces import PLAIN
from attack_readers import READERS, Reader
from pattern_loops import ROOMS, ambiguous_loop, patterns_of

LENGTH, SHORTER = 100_000, 20_000
# These take long for any text: shorter ones show a square as well.
SLOW = ("qa", "qa, a vote", "code, before it runs", "messages", "conversations", "ids and back", "drafts")
# These differ little from others, or do not look at signs: they get some.
SOME = ("qa, a vote", "messages", "conversations", "ids and back", "drafts", "maths, boxed only", "maths, a set",
        "maths, a word", "maths, a choice", "maths, a vote")  # fmt: skip
FREE = 0.5  # CPU seconds; what takes longer is compared with a quarter of its length
WIDE = 9  # times as long for four times the text: linear is 4, a square 16


@pytest.fixture(autouse=True)
def limit():
    """What takes longer than the search's limit is stopped, and fails."""
    before = signal.signal(signal.SIGVTALRM, attack_length.stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


FOREIGN_PROGRAMS = pytest.mark.filterwarnings("ignore::SyntaxWarning")


@pytest.mark.parametrize("name", READERS)
@FOREIGN_PROGRAMS
def test_every_sign_is_read_in_time_that_grows_with_its_number(name):
    reader, length = READERS[name], SHORTER if name in SLOW else LENGTH
    pieces = [*string.punctuation, *reader.pieces]
    if name in SOME:
        pieces = random.Random(name).sample(pieces, 5)
    reader.read("7")  # what is made once is made now
    for piece in pieces:
        text = Text("", piece, "")
        seconds = cpu_seconds(reader, text.of(length))
        if seconds > FREE:
            assert seconds < min(attack_length.LIMIT, WIDE * cpu_seconds(reader, text.of(length // 4))), text


@pytest.mark.parametrize("name", READERS)
@FOREIGN_PROGRAMS
def test_mixtures_are_read_in_time_that_grows_with_them(name):
    reader, rng = READERS[name], random.Random(name)
    pieces = pieces_of(reader)
    for _ in range(10):
        text = mixture(reader, pieces, rng)
        seconds = cpu_seconds(reader, text.of(3_000))
        assert seconds < FREE, text


def test_no_pattern_reads_a_text_in_many_ways():
    assert [name for name, pattern in patterns_of(*ROOMS) if ambiguous_loop(pattern)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a*)*b",
        r"(?:ax|[ab]x)*c",
        r"(?:a?b?)*c",
        r"(?:-[-\s]*)+\Z",
        r"(?:\d+,?)+x",
        r"(?:\s*\n\s*)*x",
        r"x(?>(?:a|ab|b)*c)",
    ],
)
def test_a_loop_with_two_ways_is_seen(pattern):
    assert ambiguous_loop(re.compile(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:ab|a)*c",
        r"(?:a*b)*c",
        r"(?:a*+b?)*+c",
        r"-[-\s]*\Z",
        r"(?:\d+,)+x",
        r"\s*\s*x",
        r"(?:a+b)+?|b",
        r"[^,]*,",
    ],
)
def test_a_loop_with_one_way_is_not(pattern):
    assert not ambiguous_loop(re.compile(pattern))


def test_the_search_sees_a_square():
    backtracking = Reader(re.compile(r"-*x").search, (), PLAIN, ("-",))
    quarter, _, whole = growth(backtracking, Text("", "-", ""), 12_000)
    assert whole > 6 * quarter  # sixteen times on a quiet machine
    assert is_find((0.01, 0.04, 0.16))
    assert not is_find((0.01, 0.022, 0.05))  # n log n
    assert not is_find((0.0001, 0.0004, 0.0016))  # a matter of nothing


def test_texts_are_as_long_as_asked_and_hold_words_of_the_patterns():
    assert Text("(", "1,", ")").of(10) == "(1,1,1,1,)"
    reader, rng = READERS["maths"], random.Random(0)
    pieces = pieces_of(reader)
    assert {"answer", "reflection", "đáp án"} <= {*pieces.words}
    lengths = {len(mixture(reader, pieces, rng).of(attack_length.LENGTHS[0])) for _ in range(50)}
    assert max(lengths) <= attack_length.LENGTHS[0] < 2 * min(lengths)
