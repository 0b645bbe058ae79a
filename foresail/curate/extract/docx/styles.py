"""What the names in a DOCX body mean: which styles are headings, which lists have numbers.

styles.headings -> {"Heading1": 1, "Titel": 1};   styles.ordered -> {("3", 0)}      list 3 counts at its top level
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from foresail.curate.extract.package import Package
from foresail.curate.extract.xml_events import Handler, read_xml

HEADING = re.compile(r"heading (\d)")


def local(name: str) -> str:
    """local("http://…/main}p") -> "p" """
    return name.rpartition("}")[2]


def value_of(attributes: dict[str, str], name: str = "val") -> str:
    return next((value for key, value in attributes.items() if local(key) == name), "")


@dataclass
class Styles:
    headings: dict[str, int] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)  # styles that are list items
    ordered: set[tuple[str, int]] = field(default_factory=set)


def read_styles(package: Package) -> Styles:
    styles = Styles()
    if "word/styles.xml" in package:
        read_xml(package.parts("word/styles.xml"), StyleReader(styles))
    if "word/numbering.xml" in package:
        numbering = NumberingReader()
        read_xml(package.parts("word/numbering.xml"), numbering)
        styles.ordered = {
            (number, level)
            for number, abstract in numbering.abstract_of.items()
            for level in numbering.ordered.get(abstract, ())
        }
    return styles


class StyleReader(Handler):
    def __init__(self, styles: Styles) -> None:
        self.styles = styles
        self.style = ""

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        match local(name):
            case "style":
                self.style = value_of(attributes, "styleId")
            case "name":
                label = value_of(attributes).lower()
                if label == "title":
                    self.styles.headings[self.style] = 1
                elif heading := HEADING.fullmatch(label):
                    self.styles.headings[self.style] = min(int(heading[1]), 6)
                elif label.startswith("list "):
                    self.styles.lists.add(self.style)
            case "outlineLvl":
                level = value_of(attributes)
                if level.isdecimal() and int(level[:3]) < 6:
                    self.styles.headings.setdefault(self.style, int(level[:3]) + 1)


class NumberingReader(Handler):
    def __init__(self) -> None:
        self.ordered: dict[str, set[int]] = {}
        self.abstract_of: dict[str, str] = {}
        self.abstract = self.number = ""
        self.level = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        match local(name):
            case "abstractNum":
                self.abstract = value_of(attributes, "abstractNumId")
            case "lvl":
                level = value_of(attributes, "ilvl")
                self.level = int(level[:2]) if level.isdecimal() else 0
            case "numFmt":
                if value_of(attributes) not in ("bullet", "none", ""):
                    self.ordered.setdefault(self.abstract, set()).add(self.level)
            case "num":
                self.number = value_of(attributes, "numId")
            case "abstractNumId":
                self.abstract_of[self.number] = value_of(attributes)
