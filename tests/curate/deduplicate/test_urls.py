from __future__ import annotations

import random

import pytest

from foresail.curate.deduplicate.address import normalised, page_of
from foresail.curate.deduplicate.urls import NormaliseUrls
from foresail.curate.document import Document


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Example.ORG:443/a/../b%7ec/?utm_source=x&b=2&a=1#top", "https://example.org/b~c/?a=1&b=2"),
        ("http://a.org", "http://a.org/"),
        ("http://a.org:8080/x/./y/..", "http://a.org:8080/x/"),
        ("http://a.org./../../x", "http://a.org/x"),
        ("http://user:word@a.org/", "http://a.org/"),
        ("http://a.org/x;jsessionid=1F?fbclid=2&&q=", "http://a.org/x?q="),
        ("http://a.org/%e0%b8%81%2F", "http://a.org/%E0%B8%81%2F"),
        ("http://bücher.de/x", "http://xn--bcher-kva.de/x"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("https://a.org/#!/page/2", "https://a.org/#!/page/2"),
        ("https://a.org/?b=2&b=1", "https://a.org/?b=1&b=2"),
        (" ftp://A.org/ ", "ftp://A.org/"),
        ("http://[::", "http://[::"),
        ("http://a.org:99999/", "http://a.org:99999/"),
        ("no address", "no%20address"),
        ("", ""),
    ],
)
def test_one_form(url, expected):
    assert normalised(url) == expected
    assert NormaliseUrls().open()(Document(id="1", url=url)).url in (expected, url)


def test_pages():
    assert page_of("http://www.a.org/x/?b=1") == page_of("https://a.org/x?b=1&utm_medium=m") == "a.org/x?b=1"
    assert page_of("http://a.org/x?b=1") != page_of("http://a.org/x?b=2")


@pytest.mark.parametrize("seed", range(4))
def test_the_form_of_a_form_is_itself(seed):
    dice = random.Random(seed)
    parts = "http:// https:// a.org WWW. :80 :443 / .. . %7e % %zz ? & = # ! ;jsessionid=3 utm_x=1 b A é ไ [ ] @ //"
    parts = [*parts.split(), " ", "\n", "\ud800"]
    for _ in range(2000):
        url = "https://" * dice.randrange(2) + "".join(dice.choice(parts) for _ in range(dice.randrange(12)))
        form = normalised(url)
        assert normalised(form) == form, url
