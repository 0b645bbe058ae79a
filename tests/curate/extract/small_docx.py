"""Word documents made by hand: the body's XML, and the parts beside it."""

from __future__ import annotations

import io
import zipfile

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
STYLES = """
<w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="berschrift2"><w:name w:val="Heading 2"/></w:style>
<w:style w:styleId="Kapitel"><w:name w:val="own"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
"""


def xml(tag: str, content: str) -> str:
    return f'<?xml version="1.0"?><w:{tag} xmlns:w="{W}" xmlns:m="{M}" xmlns:mc="{MC}">{content}</w:{tag}>'


def p(content: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{content}</w:p>"


def t(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def item(text: str, number: int, level: int = 0) -> str:
    return p(t(text), f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def style(name: str) -> str:
    return f'<w:pStyle w:val="{name}"/>'


def make_zip(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def make_docx(body: str, footnotes: str = "") -> bytes:
    files = {
        "[Content_Types].xml": b"<Types/>",
        "word/document.xml": xml("document", f"<w:body>{body}</w:body>").encode(),
        "word/styles.xml": xml("styles", STYLES).encode(),
        "word/numbering.xml": xml("numbering", NUMBERING).encode(),
    }
    if footnotes:
        files["word/footnotes.xml"] = xml("footnotes", footnotes).encode()
    return make_zip(files)
