"""Review understanding: made reviews, whose sentences are chosen by what they are to say."""

from __future__ import annotations

from collections.abc import Mapping

from foresail.data.made.shop.cards import Scene, Shown, card
from foresail.data.made.shop.form import Anchor, Draft, Form, choice, several, with_options

ASPECTS = ("delivery", "packaging", "quality", "price", "service")
OPINIONS = ("good", "bad", "none")


def opinions(scene: Scene, least_bad: int = 0) -> dict[str, str]:
    """What a review says of three aspects: {"delivery": "good", "price": "bad", "quality": "bad"}."""
    aspects = scene.rng.sample(ASPECTS, 3)
    bad = scene.rng.randint(least_bad, 3)
    drawn = ["bad"] * bad + ["good"] * (3 - bad)
    return dict(zip(aspects, scene.rng.sample(drawn, 3), strict=True))


def review(scene: Scene, opinions: Mapping[str, str]) -> str:
    sentences = [scene.fragment("reviews", aspect, opinion) for aspect, opinion in opinions.items()]
    return scene.language.marks["sentence"].join(sentences)


def aspect_name(scene: Scene, aspect: str) -> str:
    return str(scene.language.phrases["aspects"][aspect])


def write_aspect(scene: Scene, offer: Anchor) -> Draft:
    said = opinions(scene)
    opinion = scene.rng.choice(OPINIONS)
    fitting = [aspect for aspect in ASPECTS if said.get(aspect, "none") == opinion]
    aspect = scene.rng.choice(fitting or list(said))
    labels = scene.rng.sample(OPINIONS, len(OPINIONS))
    texts = [str(scene.language.phrases["opinions"][one]) for one in labels]
    return Draft(
        slots={
            "card": card(scene, offer, Shown(brand=False), "inline"),
            "review": review(scene, said),
            "aspect": aspect_name(scene, aspect),
            "choices": "\n".join(f"{letter}. {text}" for letter, text in zip("ABC", texts, strict=True)),
        },
        **choice(texts, labels.index(said.get(aspect, "none"))),
        offers=[offer],
        asked={"aspect": aspect, "opinions": said, "labels": labels},
    )


def write_complaints(scene: Scene, offer: Anchor) -> Draft:
    said = opinions(scene, least_bad=1)
    return Draft(
        slots={
            "card": card(scene, offer, Shown(brand=False), "inline"),
            "review": review(scene, said),
            "aspects": scene.language.join([aspect_name(scene, aspect) for aspect in ASPECTS]),
        },
        **several(scene, [aspect_name(scene, aspect) for aspect in ASPECTS if said.get(aspect) == "bad"]),
        offers=[offer],
        asked={"opinions": said},
    )


FORMS = (
    Form(name="aspect", kind="choice", needs=("attributes",), anchors=with_options, write=write_aspect),
    Form(name="complaints", kind="list", needs=("attributes",), anchors=with_options, write=write_complaints),
)
