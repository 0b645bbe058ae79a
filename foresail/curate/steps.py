"""Every built-in step: its name in recipes, and the settings class behind it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

STEPS: dict[str, str] = {
    "blocked_urls": "foresail.curate.lists.urls:BlockedUrls",
    "blocked_words": "foresail.curate.lists.words:BlockedWords",
    "classify": "foresail.curate.quality.classify:Classify",
    "duplicate_urls": "foresail.curate.deduplicate.urls:DuplicateUrls",
    "exact_duplicates": "foresail.curate.deduplicate.exact:ExactDuplicates",
    "extract": "foresail.curate.extract.step:Extract",
    "extract_doc": "foresail.curate.extract.doc.step:ExtractDoc",
    "extract_docx": "foresail.curate.extract.docx.step:ExtractDocx",
    "extract_epub": "foresail.curate.extract.epub.step:ExtractEpub",
    "extract_pdf": "foresail.curate.extract.pdf.step:ExtractPdf",
    "heuristics": "foresail.curate.heuristics.step:Heuristics",
    "judge": "foresail.curate.judging.step:JudgeStep",
    "language": "foresail.curate.language.step:Language",
    "mask_pii": "foresail.curate.pii.step:MaskPii",
    "minhash": "foresail.curate.deduplicate.minhash:Minhash",
    "normalise_urls": "foresail.curate.deduplicate.urls:NormaliseUrls",
    "perplexity": "foresail.curate.quality.perplexity:Perplexity",
    "quantiles": "foresail.curate.select.quantiles:Quantiles",
    "repeated_lines": "foresail.curate.deduplicate.repeated_lines:RepeatedLines",
    "resample": "foresail.curate.select.resample:Resample",
    "select_diverse": "foresail.curate.select.diverse:SelectDiverse",
    "semantic_duplicates": "foresail.curate.deduplicate.semantic:SemanticDuplicates",
    "sequence_classifier": "foresail.curate.quality.sequence_classifier:SequenceClassifier",
}


def step_type(name: str) -> Any:
    """step_type("minhash") -> the class of its settings; imported only when a recipe names it."""
    module, _, attribute = STEPS[name].partition(":")
    return getattr(import_module(module), attribute)
