"""The step `blocked_urls`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from foresail.curate.document import Document, Drop
from foresail.curate.lists.hosts import BlockedHosts
from foresail.curate.lists.urls import BlockedUrls


def reason(step: BlockedUrls, url: str) -> str:
    outcome = step.open()(Document(id="a", url=url, text="text"))
    return outcome.reason if isinstance(outcome, Drop) else ""


def random_host(dice: random.Random) -> str:
    return ".".join(dice.choice(["a", "b", "shop", "x-1", "co"]) for _ in range(dice.randrange(2, 5)))


def test_a_host_blocks_itself_and_what_ends_in_it() -> None:
    """Against the plain definition: equal, or ends in a point and the entry."""
    dice = random.Random(1)
    for _ in range(2000):
        entries = [random_host(dice) for _ in range(3)]
        host = random_host(dice)
        blocked = any(host == entry or host.endswith(f".{entry}") for entry in entries)
        url = dice.choice(["http://{}/", "HTTPS://{}", "{}/a/b?c", "https://user:word@{}:8080/x", "//{}/"])
        if url.startswith("//"):
            url = "https:" + url
        assert (BlockedHosts.of(entries).find(url.format(host)) is not None) == blocked, (entries, host, url)


@pytest.mark.parametrize(
    "line",
    [
        "example.org",
        "0.0.0.0 example.org",
        "127.0.0.1\texample.org  # ads",
        "*.example.org",
        ".example.org",
        "||example.org^",
        "http://Example.ORG/",
        "EXAMPLE.org.",
    ],
)
def test_formats_of_a_host(tmp_path: Path, line: str) -> None:
    (tmp_path / "hosts").write_text(f"\ufeff# a list\n\n{line}\n0.0.0.0 localhost\n", encoding="utf-8")
    step = BlockedUrls(lists=(str(tmp_path / "hosts"),))
    assert reason(step, "https://www.example.org/page") == "blocked_domain"
    assert reason(step, "https://badexample.org/") == ""
    assert reason(step, "http://localhost/") == ""
    assert reason(step, "") == ""


def test_prefixes_end_where_a_part_of_the_path_ends() -> None:
    step = BlockedUrls(domains=("example.org/casino", "example.net/~joe/"))
    assert reason(step, "https://www.example.org/casino/1") == "blocked_address"
    assert reason(step, "http://example.org/casino?x=1") == "blocked_address"
    assert reason(step, "http://example.org/casinos") == ""
    assert reason(step, "http://example.net/~joe/a.html") == "blocked_address"
    assert reason(step, "http://example.net/~joey") == ""


def test_other_alphabets_are_one_host() -> None:
    assert (
        reason(BlockedUrls(domains=("bücher.example",)), "http://xn--bcher-kva.example/") == "blocked_domain"
    )


def test_words_patterns_and_exceptions() -> None:
    step = BlockedUrls(words=("Casino",), patterns=(r"/tag/\d+$",), allow=("health.example.org",))
    assert reason(step, "https://a.org/best_CASINO-games") == "blocked_url_word"
    assert reason(step, "https://a.org/c%61sino") == "blocked_url_word"
    assert reason(step, "https://a.org/casinos") == ""
    assert reason(step, "https://a.org/TAG/12") == "blocked_url_pattern"
    assert reason(step, "https://health.example.org/casino") == ""


def test_random_addresses_never_raise() -> None:
    dice = random.Random(2)
    step = BlockedUrls(domains=("a.org", "b.org/x"), words=("x",), patterns=("y$",)).open()
    for _ in range(2000):
        url = "".join(dice.choice("ahtp:/.[]@%#?&=\x00 é\ud800x1") for _ in range(dice.randrange(30)))
        step(Document(id="a", url=url))


def test_mistakes_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no file .*missing.txt; write a path"):
        BlockedUrls(lists=(str(tmp_path / "missing.txt"),))
    with pytest.raises(ValueError, match="blocks nothing"):
        BlockedUrls()
    with pytest.raises(ValueError, match="no regular expression"):
        BlockedUrls(patterns=("(",))
    (tmp_path / "latin").write_bytes(b"b\xfccher.example\n")
    with pytest.raises(ValueError, match="not UTF-8"):
        BlockedUrls(lists=(str(tmp_path / "latin"),)).open()
