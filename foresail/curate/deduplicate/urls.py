"""Addresses: one form for each, and one document for each.

[[step]]
name = "normalise_urls"

[[step]]
name = "duplicate_urls"
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from foresail.curate.deduplicate.address import normalised, page_of
from foresail.curate.deduplicate.collected import NONE, key_of
from foresail.curate.deduplicate.exact import DuplicateKeys
from foresail.curate.deduplicate.verdicts import Apply, Verdicts
from foresail.curate.document import Document
from foresail.curate.step import StepFunction
from foresail.recipe.tables.part import Part


class NormaliseUrls(Part):
    """Writes the url of a document in one form: lower case, no fragment, no tracking parameters, sorted query."""

    def open(self) -> StepFunction:
        return normalise_url


def normalise_url(document: Document) -> Document:
    return replace(document, url=normalised(document.url)) if document.url else document


class DuplicateUrls(DuplicateKeys):
    """Drops documents whose address an earlier one has; those without an address stay."""

    def key(self, document: Document) -> tuple[int, int]:
        return key_of(page_of(document.url).encode("utf-8", "replace")) if document.url else NONE

    def open(self, decisions: Path) -> Apply:
        return Verdicts(decisions, "duplicate_url", self.keep)
