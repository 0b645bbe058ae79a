"""Which parts of a page stay."""

from __future__ import annotations

import random

from foresail.curate.document import Document, Drop
from foresail.curate.extract.main_text import main_text
from foresail.curate.extract.render.rendering import Rendering
from foresail.curate.extract.step import Extract

PLAIN = Rendering(markup=False)
SENTENCES = [
    "The harbour was quiet when the boats came back, and nobody on the quay said a word.",
    "A keel, she explained, is not there to keep the boat upright but to keep it on its course.",
    "Reefing early costs a little speed; reefing late may cost the mast, the sail and the day.",
    "Most of the charts had been drawn a century ago, and the sandbanks had moved since then.",
    "They repaired the rudder with two planks and a rope, which held until the next port.",
]
NAVIGATION = (
    '<header class="site-header"><nav class="navbar"><ul class="menu">'
    + "".join(
        f'<li class="menu-item"><a href="/{name}">{name}</a></li>' for name in ("Home", "Shop", "Sign in")
    )
    + "</ul></nav></header>"
)
FOOTER = (
    '<footer class="site-footer"><div class="newsletter">Subscribe to our newsletter</div>'
    '<p class="copyright">© 2026 Quay Media. All rights reserved.</p>'
    '<a href="/privacy">Privacy policy</a></footer>'
)
TABLE = "<table><tr><th>Wind</th><th>Sail</th></tr><tr><td>5 Bft</td><td>first reef</td></tr></table>"
CODE = "<pre><code>for knot in knots:\n    tie(knot)\n</code></pre>"
MATHS = "<p>Hull speed grows with length: <script type='math/tex'>v = \\sqrt{L}</script> in knots.</p>"


def article(middle: str = "") -> str:
    paragraphs = [f"<p>{sentence} {sentence}</p>" for sentence in SENTENCES]
    return (
        f"<!doctype html><html><head><title>On keels</title></head><body>{NAVIGATION}<main><article class='post'>"
        f"<h1>On keels</h1>{''.join(paragraphs[:3])}{middle}{''.join(paragraphs[3:])}</article></main>{FOOTER}"
    )


def test_navigation_and_footer_go() -> None:
    text, page_type = main_text(article(), "https://quay.example/2026/01/on-keels", PLAIN)
    assert all(sentence in text for sentence in SENTENCES)
    assert not any(word in text for word in ("Shop", "Subscribe", "©", "Privacy"))
    assert page_type == "article"


def test_tables_code_and_maths_inside_stay_whole() -> None:
    text, _ = main_text(article(TABLE + CODE + MATHS), "", Rendering())
    assert "| 5 Bft | first reef |" in text
    assert "for knot in knots:\n    tie(knot)" in text
    assert "\\sqrt" in text


def test_text_for_browsers_without_scripts_is_read() -> None:
    posts = "".join(f"<div class='post'><p>{sentence}</p></div>" for sentence in SENTENCES)
    text, _ = main_text(
        f"<body><div id=app>Loading</div><noscript><main>{posts}</main></noscript>", "", PLAIN
    )
    assert all(sentence in text for sentence in SENTENCES)


def test_a_page_without_main_content_is_a_drop() -> None:
    extract = Extract().open()
    for html in ("", "<p> </p>", NAVIGATION, "<script>main()</script>"):
        outcome = extract(Document(id="a", content=html.encode(), media_type="text/html"))
        assert isinstance(outcome, Drop) and outcome.reason == "empty"


def test_scope_whole_keeps_everything() -> None:
    page = Document(
        id="a", url="https://quay.example/2026/on-keels", content=article().encode(), media_type="text/html"
    )
    whole, main = Extract(scope="whole").open()(page), Extract().open()(page)
    assert isinstance(whole, Document) and isinstance(main, Document)
    assert "Privacy policy" in whole.text and "Privacy policy" not in main.text
    assert main.metadata["page_type"] == "article" and "page_type" not in whole.metadata


def test_hostile_pages_end() -> None:
    sentence = SENTENCES[0]
    pages = {
        "deep": "<div>" * 100_000 + sentence,
        "deep and closed": "<div>" * 50_000 + sentence + "</div>" * 50_000,
        "deep lists": "<ul><li>" * 20_000 + sentence,
        "siblings": "<p>a</p>" * 50_000 + f"<p>{sentence}" * 200,
        "open brackets": "<a" * 200_000 + f"><p>{sentence}",
        "no body": sentence,
        "wide": "<i>a</i>" * 30_000,
        "unclosed": f"<p>{sentence}<div><a href=x><b>" * 3_000,
        "one text": f"<p>{sentence * 20_000}",
        "attributes": "<p " + " ".join(f"class{n}='{n}'" for n in range(100_000)) + f">{sentence}",
        "long attribute": f"<p class='{'a b ' * 200_000}'>{sentence}",
        "tables": "<table><tr><td>" * 2_000 + sentence,
        "surrogates": f"<p>&#xD800;&#xDFFF;{sentence}",
    }
    extract = Extract().open()
    for name, html in pages.items():
        outcome = extract(Document(id=name, content=html.encode("utf-8", "ignore"), media_type="text/html"))
        if isinstance(outcome, Drop):
            assert outcome.reason in ("too_deep", "too_large", "damaged") or name == "wide", (name, outcome)
        else:
            assert sentence in outcome.text or name == "wide", name


def test_broken_bytes_end() -> None:
    source = article(TABLE + CODE).encode()
    extract = Extract().open()
    for seed in range(40):
        chance = random.Random(seed)
        content = bytearray(source)
        for _ in range(chance.randrange(1, 200)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        assert isinstance(
            extract(Document(id="a", content=bytes(content), media_type="text/html")), Document | Drop
        )


def test_damaged_pages_never_raise() -> None:
    source = article(TABLE + CODE + MATHS)
    for seed in range(150):
        chance = random.Random(seed)
        html = source
        for _ in range(chance.randrange(1, 8)):
            place, length = chance.randrange(len(html)), chance.randrange(1, 60)
            piece = chance.choice(
                ["", "<", ">", '"', "<table>", "</div>", "<noscript>", "\0", "<pre>", "<a>"]
            )
            html = html[:place] + piece + html[place + chance.choice([0, length]) :]
        text, page_type = main_text(html, "https://quay.example/", PLAIN)
        assert bool(text) == bool(page_type) or not text
