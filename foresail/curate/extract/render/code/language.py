"""The language of a code block, from class names and attributes of its element and those around it.

<pre class="brush: js">, <code class="language-js hljs">, <div class="highlight-source-js">   ->   "js"
"""

from __future__ import annotations

import re

from foresail.curate.extract.page import Page

KNOWN = frozenset(
    """abap actionscript ada apache applescript arduino asm assembly awk bash basic batch c c# c++ cc clojure
    cmake cobol coffeescript console cpp crystal cs csharp css cuda cython d dart delphi diff docker
    dockerfile elixir elm erlang fortran fsharp gdscript git glsl go golang gradle graphql groovy haml
    handlebars haskell haxe hcl html http ini ipython ipython3 java javascript jinja jl js json jsx
    julia kotlin kt latex less lisp llvm lua make makefile markdown mathematica matlab md mysql nasm
    nginx nim nix objc objective-c ocaml octave octavescript pascal perl perl6 php pl pgsql postgresql
    powershell prolog proto protobuf ps1 puppet py pycon python python3 pytb r racket raku rb regex rs
    rst ruby rust sas sass scala scheme scss sh shell smalltalk solidity sql stan stata svelte swift
    systemverilog tcl terraform tex toml ts tsx twig typescript v vb vba vbnet verilog vhdl vim vue wasm
    wolfram xml xquery yaml yml zig zsh""".split()
)
NONE = frozenset(
    "plain plaintext text txt none default nohighlight no-highlight auto code output unknown raw".split()
)
CLASS = re.compile(
    r"(?:^|[ \"])(?:language-|lang-|highlight-source-|highlight-text-|highlight-|sourceCode |brush:\s*|"
    r"prettyprint lang-|code-|hljs-lang-|lang:)([A-Za-z][\w+#.-]*)"
)
HIGHLIGHTER = re.compile(
    r"\b(?:hljs|highlight|syntaxhighlighter|sourceCode|prettyprint|code|codehilite|brush|chroma|src)\b"
)
ATTRIBUTES = ("data-lang", "data-language", "data-code-language", "data-codelang", "syntax")


def language(page: Page, node: int) -> str:
    """Of the element, then of its only <code>, then of three elements around."""
    inside = next((at for at in range(node + 1, page.ends[node]) if page.names[at]), None)
    around = [node]
    for _ in range(3):
        around.append(page.parents[around[-1]])
        if around[-1] <= 0:
            around.pop()
            break
    if inside is not None and page.names[inside] == "code":
        around.insert(0, inside)
    for at in around:
        if page.data[at] and (name := of_element(page, at)):
            return "" if name in NONE else name
    return ""


def of_element(page: Page, node: int) -> str:
    attributes = page.attributes(node)
    for key in ATTRIBUTES:
        if name := attributes.get(key, ""):
            return name.lower() if re.fullmatch(r"[A-Za-z][\w+#.-]{0,19}", name) else ""
    classes = attributes.get("class", "")
    for name in CLASS.findall(classes):
        name = name.lower()
        if name in KNOWN or (name in NONE):
            return name
    if HIGHLIGHTER.search(classes):
        for name in classes.lower().split():
            if name in KNOWN and name != "code":
                return name
    name = attributes.get("lang", "").lower()
    return name if name in KNOWN and page.names[node] in ("pre", "code") else ""
