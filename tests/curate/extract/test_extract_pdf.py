"""PDFs whose reading order is known, because they were made from it; their objects lie in other orders."""

from __future__ import annotations

import random
import re

import pytest
from small_pdf import column, join_objects, make_pdf, random_words

from foresail.curate.document import Document, Drop
from foresail.curate.extract.pdf.step import ExtractPdf

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
pdfium = pytest.importorskip("pypdfium2")


def extract(content: bytes, **settings: object) -> Document | Drop:
    document = Document(id="a", content=content, media_type="application/pdf")
    return ExtractPdf(**settings).open()(document)


def words_of(outcome: Document | Drop) -> list[str]:
    assert isinstance(outcome, Document), outcome
    return re.findall(r"\w+", outcome.text)


@pytest.mark.parametrize("seed", range(12))
def test_columns_are_read_one_after_the_other(seed: int):
    chance = random.Random(seed)
    num_columns = 2 + seed % 2
    chars = {2: 40, 3: 26}[num_columns]
    expected: list[str] = []
    pages = []
    for page in range(chance.randint(1, 3)):
        title = random_words(chance, 6) if page == 0 else []
        texts = [(60.0, 60.0, 18.0, " ".join(title))] if title else []
        expected += title
        for number in range(num_columns):
            words = random_words(chance, chance.randint(60, 120))
            expected += words
            left = 40 + number * (550 / num_columns)
            # lines of two columns seldom stand at one height
            texts += column(words, left, 110 + chance.choice([0, 3, 7]), chars)
        order = chance.choice(["rows", "random", "columns"])
        if order == "rows":
            texts.sort(key=lambda text: (text[1], text[0]))
        elif order == "random":
            chance.shuffle(texts)
        pages.append(texts)
    assert words_of(extract(make_pdf(pages))) == expected


def test_columns_of_rows_are_mixed_up_without_the_layout():
    """The oracle: pdfium's own order is wrong here, so the test above tests something."""
    chance = random.Random(0)
    left, right = random_words(chance, 60), random_words(chance, 60)
    texts = sorted(column(left, 40, 100, 40) + column(right, 315, 100, 40), key=lambda text: text[1])
    content = make_pdf([texts])
    assert words_of(extract(content)) == left + right
    page = pdfium.PdfDocument(content)[0]
    assert re.findall(r"\w+", page.get_textpage().get_text_range()) != left + right


def test_a_figure_across_the_columns_parts_them():
    chance = random.Random(1)
    parts = [random_words(chance, 40) for _ in range(4)]
    caption = random_words(chance, 12)
    texts = (
        column(parts[0], 40, 100, 40)
        + column(parts[1], 315, 100, 40)
        + column(caption, 40, 250, 85)
        + column(parts[2], 40, 300, 40)
        + column(parts[3], 315, 300, 40)
    )
    texts.sort(key=lambda text: text[1])
    assert words_of(extract(make_pdf([texts]))) == parts[0] + parts[1] + caption + parts[2] + parts[3]


def test_a_table_is_read_by_rows():
    rows = [(f"name{n}", f"{n * 7}", f"{n * 31}.5") for n in range(12)]
    texts = [
        (60.0 + 150 * number, 100.0 + 14 * row, 10.0, cell)
        for row, cells in enumerate(rows)
        for number, cell in enumerate(cells)
    ]
    outcome = extract(make_pdf([texts]))
    assert isinstance(outcome, Document)
    assert outcome.text.split("\n\n") == ["\t".join(row) for row in rows]


def test_headers_footers_and_page_numbers_are_dropped():
    chance = random.Random(2)
    pages, expected = [], []
    for page in range(4):
        words = random_words(chance, 200)
        expected += words
        texts = column(words, 60, 120, 75)
        texts.append((60.0, 40.0, 8.0, f"Journal of Ships {page + 7}"))
        texts.append((300.0, 770.0, 8.0, f"- {page + 7} -"))
        pages.append(texts)
    assert words_of(extract(make_pdf(pages))) == expected


def test_hyphens_go_and_paragraphs_are_joined():
    lines = ["This para-", "graph is well-", "known and goes", "on here, far be-"]
    texts = [(60.0, 100.0 + 12 * n, 10.0, line) for n, line in enumerate(lines)]
    second = [
        (60.0, 100.0, 10.0, "yond one page."),
        (72.0, 112.0, 10.0, "A new one is"),
        (60.0, 124.0, 10.0, "well-known."),
        (60.0, 180.0, 16.0, "A heading"),
        (60.0, 200.0, 10.0, "And text."),
    ]
    outcome = extract(make_pdf([texts, second]))
    assert isinstance(outcome, Document)
    assert outcome.text.split("\n\n") == [
        "This paragraph is well-known and goes on here, far beyond one page.",
        "A new one is well-known.",
        "# A heading",
        "And text.",
    ]
    assert outcome.metadata == {"pages": 2} and outcome.media_type == "text/markdown"
    plain = extract(make_pdf([texts, second]), markup=False)
    assert "\n\nA heading\n\n" in plain.text


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_pages_are_read_as_they_are_shown(turn: int):
    """Text that was written for the turned page: its lines run up or down the paper."""
    words = random_words(random.Random(3), 60)
    lines = [text for _, _, _, text in column(words, 0, 0, 40)]
    angle = {90: b"0 1 -1 0", 180: b"-1 0 0 -1", 270: b"0 -1 1 0"}[turn]
    stream = b""
    for number, line in enumerate(lines):
        step = 12 * number
        x, y = {90: (100 + step, 60), 180: (500, 100 + step), 270: (500 - step, 700)}[turn]
        stream += b"BT /F1 10 Tf %b %d %d Tm (%b) Tj ET\n" % (angle, x, y, line.encode())
    content = make_pdf([[]], page_keys=b"/Rotate %d" % turn)
    content = content.replace(
        b"<< /Length 0 >>\nstream\n\nendstream",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
    )
    assert words_of(extract(content)) == words


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged"),
        (b"%PDF-1.7", "damaged"),
        (make_pdf([[]]), "no_text_layer"),
        (make_pdf([[(60.0, 100.0, 10.0, "a")]] * 3), "too_large"),
        (
            join_objects(
                [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"]
            ),
            "damaged",
        ),
        (join_objects([b"1 0 R", b"<< /Type /Pages /Kids [] /Count 1000000000 >>"]), "damaged"),
    ],
)
def test_what_cannot_be_read_is_dropped_with_a_reason(content: bytes, reason: str):
    outcome = extract(content, max_pages=2)
    assert isinstance(outcome, Drop) and outcome.reason == reason


def test_other_documents_pass():
    page = Document(id="a", content=b"<p>", media_type="text/html")
    assert ExtractPdf().open()(page) is page
