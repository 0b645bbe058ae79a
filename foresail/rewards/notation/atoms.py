"""Atoms and powers, with the signs and units that may follow them."""

from __future__ import annotations

from foresail.rewards.notation.brackets import BARS
from foresail.rewards.notation.names import MAX_WORDS, Names
from foresail.rewards.notation.nouns import changes_value, names_things
from foresail.rewards.notation.tree import (
    CONTAINERS,
    EMPTY,
    INFINITY,
    PI,
    POSITIVE_INTEGERS,
    I,
    Node,
    Unreadable,
    number,
    symbol,
    write,
)
from foresail.rewards.notation.units import SCALE_WORDS
from foresail.rewards.notation.vocabulary import ACCENTS, CONSTANTS, FUNCTIONS, GREEK, SEPARATORS

MAX_SIGNS_BEHIND = 10  # factorials and the like on one atom
_SETS = {f"mathbb{letter}": Node("set", (letter,)) for letter in "RZQNC"}
_BAR_HEADS = {"lfloor": "floor", "lceil": "ceil"}
_ORDINALS = frozenset(["th", "st", "nd", "rd"])
_OPAQUE = frozenset("sum prod int lim iint oint bigcup bigcap".split())


class Atoms(Names):
    """A value with what is written right behind it."""

    def power(self) -> Node:
        self.enter()
        tree = self.atom()
        for _ in range(MAX_SIGNS_BEHIND):
            token = self.peek()
            if token.kind == "^":
                self.advance()
                tree = self.raised(tree)
            elif token.kind == "!":
                self.advance()
                double = self.peek().kind == "!" and not self.peek().spaced
                if double:
                    self.advance()
                tree = Node("!!" if double else "!", (tree,))
            elif token.kind == "%":
                self.advance()
                tree = Node("%", (tree,))
            elif token.kind == "command" and token.text in ("degree", "circ"):
                self.advance()
                if token.text == "circ" and tree.head in ("symbol", "apply") and self.starts_factor():
                    raise Unreadable("a composition of functions")
                tree = Node("deg", (tree,))
            elif (
                token.kind == "_" and tree.head == "^" and tree.args[0].head in ("symbol", "constant")
            ):  # v^2_0
                tree = Node("^", (self.indexed(str(tree.args[0].args[0])), tree.args[1]))
            elif token.kind == "'" and tree.head == "number":
                tree = self.feet_and_inches(tree)
            elif token.kind == "_" and tree.head == "number":  # (1011)_2
                tree = self.with_base(write(tree.args[0]))
            else:
                break
        self.leave()
        return tree

    def feet_and_inches(self, feet: Node) -> Node:
        """`5'10''`, as a list of two lengths."""
        self.advance()
        inches = self.number(self.expect("number"))
        if self.advance().kind == "'":
            self.expect("'")
        elif self.tokens[self.position - 1].kind != '"':
            raise Unreadable("a prime behind a number")
        return Node("list", (Node("unit", (feet, "feet")), Node("unit", (inches, "inches"))))

    def raised(self, base: Node) -> Node:
        r"""base^exponent, where `^\circ` is a degree sign and `^{\text{th}}` only an ordinal's tail."""
        inner = self.peek(1) if self.peek().kind == "{" else self.peek()
        if inner.kind == "command" and inner.text in ("circ", "degree"):
            self.skip_script()
            if self.peek().kind == "letter" and self.peek().text in "CF":
                return Node("unit", (base, f"°{self.advance().text}"))
            return Node("deg", (base,))
        if inner.kind == "word" and inner.text in _ORDINALS:
            self.skip_script()
            return base
        if inner.text == "prime" and base.head == "symbol":
            return symbol(base.args[0] + "'" * self.primes())
        self.enter()
        exponent = self.script()
        if self.peek().kind == "^":
            self.advance()
            exponent = self.raised(exponent)
        self.leave()
        if base.head in CONTAINERS and exponent.args[:1] in (("T",), ("\\top",)):  # (1, 2)^T
            return base
        return Node("^", (base, exponent))

    def primes(self) -> int:
        r"""How many \prime stand in the exponent."""
        count = 0
        braced = self.peek().kind == "{"
        if braced:
            self.advance()
        while self.at_command("prime"):
            self.advance()
            count += 1
        if braced:
            self.expect("}")
        return count

    def script(self) -> Node:
        """What stands after ^ or _: a group, a whole number, a signed atom."""
        self.enter()
        if self.peek().kind == "{":
            tree = self.braced()
        elif self.peek().kind in ("-", "+"):
            negative = self.advance().kind == "-"
            atom = self.atom()
            tree = Node("neg", (atom,)) if negative else atom
        else:
            tree = self.atom()
        self.leave()
        return tree

    def with_unit(self, tree: Node) -> Node:
        """`5 miles per hour`, `15 cm^2`: words behind a value name its unit."""
        words: list[str] = self.bracketed_unit()
        while True:
            token = self.peek()
            if token.kind == "word" and token.text.lower() in SCALE_WORDS and not words:
                factors = tree.args if tree.head == "*" else (tree,)
                tree = Node("*", (*factors, number(SCALE_WORDS[self.advance().text.lower()])))
            elif (
                token.kind == "word" and token.text.lower() not in SEPARATORS and token.text != "to"
            ) or token.kind == "currency":
                words.append(self.advance().text)
            elif words and token.kind == "/" and self.peek(1).kind in ("word", "letter"):
                self.advance()
                words += ["/", self.advance().text]
            elif words and token.kind == "." and self.peek(1).kind == "word":
                self.advance()
            elif words and self.at_command("cdot") and self.peek(1).kind in ("word", "letter"):
                self.advance()
                words.append(self.advance().text)
            else:
                break
            if self.peek().kind == "^" and words:
                words[-1] += self.unit_power()
            if len(words) > MAX_WORDS:
                raise Unreadable("prose")
        if words and words[0] in _ORDINALS:
            if len(words) > 1:
                raise Unreadable("an ordinal")
            return tree
        if words and not names_things(words):
            raise Unreadable("words that are no unit")
        return Node("unit", (tree, " ".join(words))) if words else tree

    def bracketed_unit(self) -> list[str]:
        r"""`7 \text{ (square cm)}`"""
        length = 0
        while self.peek().kind == "(" and self.peek(length + 1).kind == "word":
            length += 1
        words = [self.peek(place).text for place in range(1, length + 1)]
        if not words or self.peek(length + 1).kind != ")" or any(map(changes_value, words)):
            return []
        self.position += length + 2
        return words

    def unit_power(self) -> str:
        self.advance()
        exponent = self.script()
        sign, size = ("-", exponent.args[0]) if exponent.head == "neg" else ("", exponent)
        return f"^{sign}{write(size.args[0])}" if size.head == "number" else "^?"

    def starts_factor(self) -> bool:
        """Whether an atom begins here that multiplies what came before."""
        token = self.peek()
        if token.kind in ("letter", "{"):
            return True
        if token.kind == "(":  # words in brackets are a unit
            return self.peek(1).kind != "word"
        if token.kind == "[":
            return "[" not in self.open[-1:] and "]" not in self.open[-1:]
        if token.kind == "|":
            return "|" not in self.open
        if token.kind == "number":
            return self.position > 0 and self.tokens[self.position - 1].kind != "number"
        if token.kind != "command":
            return False
        if token.text in BARS:
            return token.text not in ("vert", "Vert") or token.text not in self.open
        return (
            token.text in FUNCTIONS
            or token.text in CONSTANTS
            or token.text in GREEK
            or token.text in ACCENTS
            or token.text in _OPAQUE
            or token.text.endswith(("frac", "binom", "dots"))
            or token.text in ("sqrt", "begin")
        )

    def closes(self) -> bool:
        token = self.peek()
        if token.kind in (")", "}", r"\}", "end", "&", "row"):
            return True
        if token.kind == "]":
            return bool(self.open)
        if token.kind == "|":
            return "|" in self.open
        if token.kind == "[":
            return self.open[-1:] in (["["], ["]"])
        return token.kind == "command" and (
            token.text in ("rangle", "rvert", "rVert", "rfloor", "rceil", "end", "mid", "rbrace")
            or (token.text in ("vert", "Vert") and token.text in self.open)
        )

    def atom(self) -> Node:
        self.enter()
        tree = self.read_atom()
        self.leave()
        return tree

    def read_atom(self) -> Node:
        token = self.advance()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "letter":
            return self.name(token.text)
        if token.kind == "command":
            return self.command(token.text)
        if token.kind in ("(", "[", "]"):
            return self.bracket(token.kind)
        if token.kind == "{":
            self.position -= 1
            return self.braced()
        if token.kind == r"\{":
            return self.set_braces()
        if token.kind == "|":
            return self.bars("|", "abs")
        if token.kind == "word":
            return self.label(token.text)
        if token.kind in ("_", "^"):
            return self.selection()
        raise Unreadable(f"{token.text or 'nothing'} where a value should stand")

    def number_set(self, name: str) -> Node:
        r"""`\mathbb{Z}`, and `\mathbb{Z}^+` or `\mathbb{Z}_{>0}`, which is \{1, 2, …\} there."""
        shape = " ".join(token.text for token in self.tokens[self.position : self.position + 5])
        for positive in ("_ { > 0 }", "^ { + }", "_ { + }", "^ +", "_ +"):
            if name == "mathbbZ" and shape.startswith(positive):
                self.position += len(positive.split())
                return POSITIVE_INTEGERS
        if self.peek().kind in ("^", "_"):
            raise Unreadable("a part of a set")
        return _SETS[name]

    def selection(self) -> Node:
        """`_{10}C_3` and `^{10}P_3`: how many ways to choose or to arrange."""
        total = self.script()
        letter = self.advance()
        if letter.kind != "letter" or letter.text not in "CP":
            raise Unreadable("an index of nothing")
        self.expect("_")
        return Node("binom" if letter.text == "C" else "perm", (total, self.script()))

    def command(self, name: str) -> Node:
        if name.endswith("frac"):
            return Node("/", (self.piece(), self.piece()))
        if name == "sqrt":
            return self.root()
        if name.endswith("binom"):
            return Node("binom", (self.piece(), self.piece()))
        if name in FUNCTIONS:
            return self.function(FUNCTIONS[name])
        if name in CONSTANTS:
            return {"pi": PI, "infinity": INFINITY, "empty": EMPTY, "i": I}[CONSTANTS[name]]
        if name in ("angle", "triangle", "square"):
            return self.power()
        if name in BARS:
            return self.bars(name, _BAR_HEADS.get(name, "abs"))
        if name in ("langle", "lbrace", "lbrack"):
            return self.angle_brackets(name)
        if name == "begin":
            return self.environment()
        if name in _SETS:
            return self.number_set(name)
        if name in ACCENTS:
            return self.accented(name)
        if name in _OPAQUE:
            return self.opaque(name)
        if name.endswith("dots"):
            return symbol("…")
        if name in ("pm", "mp"):
            return Node(name, (number(0), self.power()))
        return self.greek(name)
