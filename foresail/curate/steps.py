"""Every built-in step: its name in recipes, and the settings class behind it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

STEPS: dict[str, str] = {
    "balance": "foresail.curate.select.balance:Balance",
    "blocked_urls": "foresail.curate.lists.urls:BlockedUrls",
    "blocked_words": "foresail.curate.lists.words:BlockedWords",
    "cap_responses": "foresail.curate.conversations.cap_responses:CapResponses",
    "check_answers": "foresail.curate.problems.answers:CheckAnswers",
    "check_programs": "foresail.curate.problems.programs:CheckPrograms",
    "classify": "foresail.curate.quality.classify:Classify",
    "code_prompt": "foresail.curate.problems.code_prompt:CodePrompt",
    "decontaminate": "foresail.curate.decontaminate.step:Decontaminate",
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
    "majority": "foresail.curate.problems.majority:Majority",
    "mask_pii": "foresail.curate.pii.step:MaskPii",
    "minhash": "foresail.curate.deduplicate.minhash:Minhash",
    "normalise_urls": "foresail.curate.deduplicate.urls:NormaliseUrls",
    "pass_rates": "foresail.curate.problems.pass_rates:PassRates",
    "perplexity": "foresail.curate.quality.perplexity:Perplexity",
    "problem_form": "foresail.curate.problems.form:ProblemForm",
    "problem_kind": "foresail.curate.problems.kind:ProblemKind",
    "quantiles": "foresail.curate.select.quantiles:Quantiles",
    "reformulate": "foresail.curate.rewriting.reformulate:Reformulate",
    "repeated_lines": "foresail.curate.deduplicate.repeated_lines:RepeatedLines",
    "resample": "foresail.curate.select.resample:Resample",
    "responses": "foresail.curate.conversations.responses.step:Responses",
    "same_problems": "foresail.curate.problems.same_problems:SameProblems",
    "select_diverse": "foresail.curate.select.diverse:SelectDiverse",
    "semantic_duplicates": "foresail.curate.deduplicate.semantic:SemanticDuplicates",
    "sequence_classifier": "foresail.curate.quality.sequence_classifier:SequenceClassifier",
    "tool_calls": "foresail.curate.conversations.tool_calls:ToolCalls",
    "translate": "foresail.curate.rewriting.translate:Translate",
}


def step_type(name: str) -> Any:
    """step_type("minhash") -> the class of its settings; imported only when a recipe names it."""
    module, _, attribute = STEPS[name].partition(":")
    return getattr(import_module(module), attribute)
