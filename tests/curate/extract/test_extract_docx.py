"""Word documents as pages: what each part of a body becomes, and what is left out."""

from __future__ import annotations

import pytest
from small_docx import W, item, make_docx, make_zip, p, style, t, xml

from foresail.curate.extract.docx.page import docx_page
from foresail.curate.extract.package import Refused


@pytest.mark.parametrize(
    ("body", "page"),
    [
        (p(t("One ") + t("two &lt;3")), "<p>One two &lt;3</p>"),
        (p(t("A"), style("Heading1")) + p(t("B"), style("berschrift2")), "<h1>A</h1><h2>B</h2>"),
        (p(t("C"), style("Kapitel")) + p(t("D"), '<w:outlineLvl w:val="0"/>'), "<h3>C</h3><h1>D</h1>"),
        (item("a", 1) + item("b", 1) + p(t("c")), "<ul><li>a</li><li>b</li></ul><p>c</p>"),
        (
            item("a", 1) + item("b", 1, 1) + item("c", 2),
            "<ul><li>a</li><ul><li>b</li></ul></ul><ol><li>c</li></ol>",
        ),
        (p("<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r>"), "<p>a b<br>c</p>"),
        (p("<w:del><w:r><w:delText>no</w:delText></w:r></w:del><w:ins>" + t("yes") + "</w:ins>"), "<p>yes</p>"),
        (p("<w:r><w:instrText>PAGE</w:instrText></w:r><w:hyperlink>" + t("url") + "</w:hyperlink>"), "<p>url</p>"),
        (
            p("<mc:AlternateContent><mc:Choice>" + t("a") + "</mc:Choice><mc:Fallback>" + t("b") + "</mc:Fallback>")
            .replace("</w:p>", "</mc:AlternateContent></w:p>"),
            "<p>a</p>",
        ),
        (p(t("a") + "<w:r><w:txbxContent>" + p(t("box")) + "</w:txbxContent></w:r>"), "<p>a<br>box</p>"),
        (
            "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>" + p(t("wide")) + "</w:tc></w:tr>"
            "<w:tr><w:tc>" + p(t("1")) + p(t("2")) + "</w:tc><w:tc>" + p("") + "</w:tc></w:tr></w:tbl>",
            '<table><tr><td colspan="2"><p>wide</p></td></tr><tr><td><p>1</p><p>2</p></td><td></td></tr></table>',
        ),
        (
            "<w:tbl><w:tr><w:tc>" * 2 + p(t("inner")) + "</w:tc></w:tr></w:tbl>" * 2,
            "<table><tr><td><table><tr><td><p>inner</p></td></tr></table></td></tr></table>",
        ),
        (p("") * 1000 + p(t("at last")), "<p>at last</p>"),
    ],
)  # fmt: skip
def test_parts_of_a_body(body: str, page: str):
    assert docx_page(make_docx(body)) == page


def test_footnotes_stand_at_the_end():
    body = p(t("Text") + '<w:r><w:footnoteReference w:id="2"/></w:r>' + t("."))
    notes = '<w:footnote w:type="separator" w:id="-1">' + p("") + "</w:footnote>"
    notes += '<w:footnote w:id="2">' + p(t(" The note.")) + "</w:footnote>"
    assert docx_page(make_docx(body, notes)) == "<p>Text[^2].</p><p>[^2]: The note.</p>"


def m(name: str, *content: str, **properties: str) -> str:
    marks = "".join(f'<m:{key} m:val="{value}"/>' for key, value in properties.items())
    return f"<m:{name}><m:{name}Pr>{marks}</m:{name}Pr>{''.join(content)}</m:{name}>"


def r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def e(content: str, name: str = "e") -> str:
    return f"<m:{name}>{content}</m:{name}>"


@pytest.mark.parametrize(
    ("formula", "mathml"),
    [
        (r("2x+1"), "<mn>2</mn><mi>x</mi><mo>+</mo><mn>1</mn>"),
        (
            m("f", e(r("a"), "num"), e(r("b"), "den")),
            "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>",
        ),
        (
            m("sSup", e(r("x")), e(r("2"), "sup")),
            "<msup><mrow><mi>x</mi></mrow><mrow><mn>2</mn></mrow></msup>",
        ),
        (m("rad", e("", "deg"), e(r("2")), degHide="1"), "<msqrt><mrow><mn>2</mn></mrow></msqrt>"),
        (
            m("nary", e(r("i"), "sub"), e(r("n"), "sup"), e(r("i")), chr="∑"),
            "<mrow><munderover><mo>∑</mo><mrow><mi>i</mi></mrow><mrow><mi>n</mi></mrow></munderover>"
            "<mrow><mi>i</mi></mrow></mrow>",
        ),
        (
            m("d", e(r("x")), begChr="[", endChr="]"),
            "<mrow><mo>[</mo><mrow><mi>x</mi></mrow><mo>]</mo></mrow>",
        ),
        (
            m("m", e(e(r("1")) + e(r("2")), "mr"), e(e(r("3")) + e(r("4")), "mr")),
            "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
            "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable>",
        ),
    ],
)
def test_formulas_become_mathml(formula: str, mathml: str):
    body = p(t("So ") + f"<m:oMath>{formula}</m:oMath>" + t("."))
    assert docx_page(make_docx(body)) == f"<p>So <math>{mathml}</math>.</p>"
    body = p(f"<m:oMathPara><m:oMath>{formula}</m:oMath></m:oMathPara>")
    assert docx_page(make_docx(body)) == f'<p><math display="block">{mathml}</math></p>'


LAUGHS = (
    '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    f'<w:document xmlns:w="{W}"><w:body><w:p><w:r><w:t>&c;</w:t></w:r></w:p></w:body></w:document>'
)
OUTER = '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + LAUGHS.partition("]>")[2].replace(
    "&c;", "&a;"
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "truncated"),
        (make_docx(p(t("a")))[:-30], "truncated"),
        (make_zip({"a.txt": b"a"}), "damaged"),
        (make_zip({"word/document.xml": b"no XML"}), "damaged"),
        (make_zip({"word/document.xml": LAUGHS.encode()}), "entities"),
        (make_zip({"word/document.xml": OUTER.encode()}), "entities"),
        (make_zip({"word/document.xml": b"<a>" * 1000}), "damaged"),
        (make_zip({"word/document.xml": b'<?xml version="1.0" encoding="none-such"?><a/>'}), "damaged"),
        (make_zip({"word/document.xml": bytes(5 * 2**20)}), "damaged"),
        (make_zip({"word/document.xml": b"<a>" + b" " * 5 * 2**20}), "too_large"),
        (make_docx("<w:p/>" * 5000), "too_large"),
    ],
)
def test_what_is_no_document_is_refused(content: bytes, reason: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foresail.curate.extract.docx.page.MAX_UNPACKED", 2**22)
    monkeypatch.setattr("foresail.curate.extract.xml_events.MAX_ELEMENTS", 4000)
    with pytest.raises(Refused) as refusal:
        docx_page(content)
    assert refusal.value.drop.reason == reason


def test_a_body_that_breaks_off_gives_what_is_before():
    content = xml("document", f"<w:body>{p(t('first'))}{p(t('second'))}").encode()[
        : -len("</w:document>") - 20
    ]
    assert docx_page(make_zip({"word/document.xml": content})).startswith("<p>first</p>")
