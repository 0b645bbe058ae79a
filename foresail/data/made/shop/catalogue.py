"""The twelve tasks of Compass-v2 (section 3.1.2), and the forms of each."""

from __future__ import annotations

from foresail.data.made.shop.form import Form
from foresail.data.made.shop.tasks import (
    classification,
    dialogue,
    extraction,
    generation,
    matching,
    numerical,
    product_info,
    questioning,
    recommendation,
    reviews,
    rewriting,
    similarity,
)

TASKS: dict[str, tuple[Form, ...]] = {
    "product-info": product_info.FORMS,
    "extraction": extraction.FORMS,
    "classification": classification.FORMS,
    "recommendation": recommendation.FORMS,
    "similarity": similarity.FORMS,
    "numerical": numerical.FORMS,
    "generation": generation.FORMS,
    "questioning": questioning.FORMS,
    "matching": matching.FORMS,
    "reviews": reviews.FORMS,
    "rewriting": rewriting.FORMS,
    "dialogue": dialogue.FORMS,
}
