r"""Functions with their arguments: \sin 2x, \log_2 8, \sqrt[3]{x}, \frac12, \sum."""

from __future__ import annotations

from foresail.rewards.notation.brackets import Brackets
from foresail.rewards.notation.tokens import Token
from foresail.rewards.notation.tree import PI, I, Node, Unreadable, number, symbol
from foresail.rewards.notation.vocabulary import FUNCTIONS

_ONE = range(1, 2)
VECTORS = frozenset(["vec", "overrightarrow"])
_UNIT_VECTORS = (I, symbol("j"), symbol("k"))
_INVERSES = frozenset("sin cos tan cot sec csc sinh cosh tanh".split())
_ARGUMENTS = dict.fromkeys(["max", "min", "gcd", "lcm"], range(1, 100)) | {
    "log": range(1, 3),  # log(8, 2)
    "binom": range(2, 3),
}


class Functions(Brackets):
    """A name and what it is applied to."""

    def piece(self) -> Node:
        r"""An argument of \frac: a group, or one character, so that `\frac12` is a half."""
        token = self.peek()
        if token.kind == "{":
            return self.braced()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.position] = Token("number", token.text[1:])
            return number(int(token.text[0]))
        if token.kind in ("number", "letter", "command", "("):
            return self.atom()
        raise Unreadable("a fraction without its parts")

    def root(self) -> Node:
        if self.peek().kind == "[":
            self.advance()
            self.open.append("[")
            index = self.sum()
            self.open.pop()
            self.expect("]")
            return Node("root", (self.script(), index))
        return Node("sqrt", (self.script(),))

    def function(self, head: str) -> Node:
        power: Node | None = None
        base: Node | None = None
        while self.peek().kind in ("^", "_"):
            if self.advance().kind == "^":
                power = self.script()
            else:
                base = self.log_base() if head == "log" else self.script()
        if power is not None and head in _INVERSES and power == Node("neg", (number(1),)):
            head, power = f"arc{head}", None
        arguments = self.function_arguments(head)
        if head == "log" and base is not None:
            arguments = (arguments[0], base)
        elif base is not None:
            return Node("apply", (head, base, *arguments))
        tree = Node(head, arguments)
        return tree if power is None else Node("^", (tree, power))

    def log_base(self) -> Node:
        r"""`\log_28`: LaTeX takes one character for the base when the argument would be missing otherwise."""
        token = self.peek()
        self.position += 1
        alone = not (self.starts_factor() or self.peek().kind == "number")
        self.position -= 1
        if token.kind == "number" and token.text.isdigit() and len(token.text) > 1 and alone:
            self.tokens[self.position] = Token("number", token.text[1:])
            return number(int(token.text[0]))
        return self.script()

    def function_arguments(self, head: str) -> tuple[Node, ...]:
        if self.peek().kind == "(":
            arguments = self.arguments()
        elif self.peek().kind in (r"\{", "{"):
            group = self.atom()
            arguments = group.args if group.head in ("{}", "braces") else (group,)
        else:
            arguments = (self.loose_argument(),)
        if len(arguments) not in _ARGUMENTS.get(head, _ONE):
            raise Unreadable(f"{head} of so many things")
        return arguments

    def loose_argument(self) -> Node:
        r"""The argument of `\sin 2x` or `\cos 2\pi/7`: factors up to the next sign, function or bracket."""
        negative = self.peek().kind == "-"
        if negative:
            self.advance()
        factors = [self.power()]
        while self.starts_factor() and self.peek().kind not in ("(", "{", "[", "|"):
            if self.peek().kind == "command" and self.peek().text in FUNCTIONS:
                break
            factors.append(self.power())
        tree = factors[0] if len(factors) == 1 else Node("*", tuple(factors))
        if PI in factors and self.peek().kind == "/" and self.peek(1).kind == "number":
            self.advance()
            tree = Node("/", (tree, self.power()))
        return Node("neg", (tree,)) if negative else tree

    def accented(self, name: str) -> Node:
        tree = self.script()
        if tree.head == "number":
            raise Unreadable("an accent on a number")
        if name in ("bar", "overline"):
            return Node("apply", ("bar", tree)) if tree.head == "symbol" else Node("conj", (tree,))
        if name in VECTORS:
            self.after_vector = self.position
            return tree
        if name in ("hat", "widehat") and tree in _UNIT_VECTORS:
            return tree
        return Node("apply", (name, tree))

    def opaque(self, name: str) -> Node:
        """A sum or an integral: read, so that it can be compared, and never carried out."""
        bounds: list[Node] = []
        while self.peek().kind in ("_", "^"):
            self.advance()
            if self.peek().kind == "{":
                self.advance()
                bounds += self.group_items()
                self.expect("}")
            else:
                bounds.append(self.atom())
        factors = [self.power()]
        while self.starts_factor():
            factors.append(self.power())
        body = factors[0] if len(factors) == 1 and name != "int" else Node("*", tuple(factors))
        return Node("opaque", (name, body, *bounds))
