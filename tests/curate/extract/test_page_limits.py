"""Pages that would cost the parser minutes are refused, and large ordinary pages are not."""

from __future__ import annotations

import pytest

from foresail.curate.extract.page_limits import check_page
from foresail.curate.extract.refused import Refused

ORDINARY = (
    "<div class='row'><p>A <b>word</b> &amp; <a href='/x'>a link</a><br><img src=x alt='y'></p></div>\n"
)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * 20_000, "too_deep"),
        ("<div>" * 20_000 + "</div>" * 20_000, "too_deep"),
        ("<ul><li>" * 15_000, "too_deep"),
        ("<x-y>" * 20_000, "too_deep"),
        ("".join(f"<font size={n}>" for n in range(1500)) + "<p>x" * 1500, "too_deep"),
        ("".join(f"<b id={n}><i></i>" for n in range(1500)) + "<p>x" * 1500, "too_deep"),
        ("<p " + " ".join(f"a{n}" for n in range(20_000)) + ">", "damaged"),
        ("<p " * 20_000 + ">", "damaged"),
        ("<b></b>" * 600_000, "too_large"),
    ],
)
def test_such_a_page_is_refused(page: str, reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_page(page)
    assert refusal.value.drop.reason == reason


@pytest.mark.parametrize(
    "page",
    [
        ORDINARY * 20_000,
        "<p>text<li>item<td>cell<br>" * 40_000,  # never closed, as in old pages
        "<svg><path d='M0 0'/></svg>" * 20_000,
        "<i><p>" * 5000,  # the parser repeats three of those that are the same
        "<div data-state='" + "a b c " * 100_000 + "'></div>",
        f"<img src='data:image/png;base64,{'A' * 10**6}'>",
        "a < b and c > d " * 50_000,
    ],
)
def test_such_a_page_is_read(page: str) -> None:
    check_page(page)
