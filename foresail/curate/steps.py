"""Every built-in step: its name in recipes, and the settings class behind it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

STEPS: dict[str, str] = {
    "duplicate_urls": "foresail.curate.deduplicate.urls:DuplicateUrls",
    "exact_duplicates": "foresail.curate.deduplicate.exact:ExactDuplicates",
    "extract": "foresail.curate.extract.step:Extract",
    "extract_docx": "foresail.curate.extract.docx.step:ExtractDocx",
    "extract_epub": "foresail.curate.extract.epub.step:ExtractEpub",
    "extract_pdf": "foresail.curate.extract.pdf.step:ExtractPdf",
    "minhash": "foresail.curate.deduplicate.minhash:Minhash",
    "normalise_urls": "foresail.curate.deduplicate.urls:NormaliseUrls",
    "repeated_lines": "foresail.curate.deduplicate.repeated_lines:RepeatedLines",
}


def step_type(name: str) -> Any:
    """step_type("minhash") -> the class of its settings; imported only when a recipe names it."""
    module, _, attribute = STEPS[name].partition(":")
    return getattr(import_module(module), attribute)
