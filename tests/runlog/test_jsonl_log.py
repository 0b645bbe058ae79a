"""JSON lines that survive a kill in the middle of one, and a disk that fills up."""

import errno
import json
import math
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.runlog.jsonl_log import JsonlLog, encode

RECORDS = [{"step": step, "text": "länger" * step} for step in range(1, 4)]


def test_reads_back_what_was_appended(tmp_path):
    log = JsonlLog(tmp_path / "log.jsonl")
    assert log.read() == []
    log.append(RECORDS[:1])
    log.append(RECORDS[1:])
    assert log.read() == RECORDS


def test_cut_at_any_byte_keeps_the_whole_lines_and_goes_on(tmp_path):
    """A kill may come between any two bytes; neither reader nor next append may stumble."""
    log = JsonlLog(tmp_path / "log.jsonl")
    log.append(RECORDS)
    whole = log.path.read_bytes()
    for cut in range(len(whole) + 1):
        log.path.write_bytes(whole[:cut])
        survivors = RECORDS[: whole[:cut].count(b"\n")]
        assert log.read() == survivors
        log.append([{"step": 9}])
        assert log.read() == [*survivors, {"step": 9}]


def test_rewind_drops_later_steps_and_the_torn_line(tmp_path):
    log = JsonlLog(tmp_path / "log.jsonl")
    log.append(RECORDS)
    with log.path.open("ab") as file:
        file.write(b'{"step": 1, "to')
    log.rewind(2)
    assert log.path.read_bytes() == b"".join(map(encode, RECORDS[:2]))
    log.rewind(0)
    assert log.path.read_bytes() == b""


def test_line_that_cannot_be_written_whole_is_taken_back(tmp_path):
    """A limit on the file's size stops the write half-way, as a full disk does."""
    log = JsonlLog(tmp_path / "log.jsonl")
    log.append(RECORDS)
    before = log.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(OSError, match="cannot write in") as caught:
            log.append([{"step": 4, "text": "x" * 100}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert log.path.read_bytes() == before


def test_full_disk_is_named(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"cannot write in {tmp_path}: No space left.*free some space"):
        JsonlLog(tmp_path / "log.jsonl").append(RECORDS)


@pytest.mark.parametrize("bad", ["not json", "[1]", '{"no": "step"}', '{"step": "one"}'])
def test_broken_line_in_the_middle_is_an_error_that_says_where(tmp_path, bad):
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"step": 1}}\n{bad}\n{{"step": 3}}\n')
    with pytest.raises(ValueError, match=r"log\.jsonl line 2 .*remove that line"):
        JsonlLog(path).read()


def test_a_link_to_a_place_that_is_gone_is_no_empty_log(tmp_path):
    """A disk that is not there any more, say."""
    log = JsonlLog(tmp_path / "log.jsonl")
    log.path.symlink_to(tmp_path / "disk" / "log.jsonl")
    with pytest.raises(
        ValueError, match=r"link to .*disk/log.jsonl, which is gone; bring that back, or remove"
    ):
        log.read()


def test_nan_becomes_null_and_keeps_its_name():
    record = {"step": 1, "loss": math.nan, "deep": [{"logprob": -math.inf}, (1.5, "NaN")]}
    assert encode(record) == b'{"step":1,"loss":null,"deep":[{"logprob":null},[1.5,"NaN"]]}\n'


def test_half_a_surrogate_pair_and_huge_numbers_are_kept():
    record = {"step": 1, "text": "\ud83d", "count": 2**70, "loss": math.nan}
    assert json.loads(encode(record)) == record | {"loss": None}


@given(st.dictionaries(st.text(), st.floats() | st.integers() | st.text() | st.lists(st.floats())))
def test_every_record_is_one_line_of_strict_json(record):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    line = encode(record)
    assert line.count(b"\n") == 1
    back = json.loads(line, parse_constant=refuse)
    assert back.keys() == record.keys()
    numbers = {name: value for name, value in record.items() if isinstance(value, float)}
    assert all(back[name] == (value if math.isfinite(value) else None) for name, value in numbers.items())
