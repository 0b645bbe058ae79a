from foresail.curate.extract.page import read_page
from foresail.curate.extract.render.markdown import render
from foresail.curate.extract.render.rendering import Rendering

PLAIN = Rendering(markup=False)


def markdown(html: str) -> str:
    return render(read_page(html))


def plain(html: str) -> str:
    return render(read_page(html), rendering=PLAIN)


def test_headings_paragraphs_and_lists() -> None:
    html = "<h1>A</h1><p>x <b> y </b>z<ul><li>b<li><p>c</p><p>d<ol start=3><li>e<ul><li>f</ul><li>g</ol></ul><p>q"
    assert markdown(html) == "# A\n\nx **y** z\n\n- b\n- c\n\n  d\n\n  3. e\n     - f\n  4. g\n\nq"
    assert plain(html).startswith("A\n\nx y z\n\n- b\n- c")


def test_quotes_have_a_mark_on_every_line() -> None:
    html = "<blockquote><p>a<p>b<ul><li>z</ul></blockquote>after<br><br>x"
    assert markdown(html) == "> a\n>\n> b\n>\n> - z\n\nafter\n\nx"
    assert plain(html) == "a\n\nb\n\n- z\n\nafter\n\nx"


def test_tables() -> None:
    rows = ["<th>a<th>b", "<td>1 <script type='math/tex'>x|y</script><td>2<br>3", "<td colspan=2>q"]
    html = "<table><tr>" + "<tr>".join(rows) + "</table>"
    assert markdown(html) == "| a | b |\n| --- | --- |\n| 1 $x|y$ | 2 3 |\n| q |  |"
    assert plain(html) == "a\tb\n1 $x|y$\t2 3\nq"


def test_code_keeps_its_indentation_and_its_language() -> None:
    html = "<pre class='brush: js'>\n\nif x:\n    ```\n  y()\n\n</pre><p>so <code>a`b</code>"
    assert markdown(html) == "````js\nif x:\n    ```\n  y()\n````\n\nso `` a`b ``"
    assert plain(html) == "if x:\n    ```\n  y()\n\nso a`b"


def test_delimiters_of_tex_become_dollars() -> None:
    assert (
        markdown(r"<p>if \(a^2\) then \[ b \\[2pt] c \] and $d$") == r"if $a^2$ then $$b \\[2pt] c$$ and $d$"
    )


def test_raised_numbers_are_not_glued_to_words() -> None:
    assert markdown("10<sup>6</sup> H<sub>2</sub>O 1<sup>st</sup> word<sup><a href='#n'>3</a></sup>") == (
        "10⁶ H₂O 1st word[3]"
    )


def test_chinese_lines_and_inline_tags_join_without_a_space() -> None:
    assert markdown("<p>中文\n  内<b>容</b>和<i>字</i>") == "中文内**容**和*字*"
    assert plain("<p>ภาษา<b>ไทย</b>ดี") == "ภาษาไทยดี"


def test_what_is_dropped_leaves_nothing() -> None:
    page = read_page("<p>a<div class=x>b<p>c</div><p>d")
    assert render(page, dropped={page.data.index(' class="x"')}) == "a\n\nd"


def test_a_page_nested_ten_thousand_deep() -> None:
    depth = 10_000
    from foresail.curate.extract.page import flatten

    for tag in ("div", "blockquote", "ul><li", "b", "span", "table><tr><td"):
        html = f"<{tag}>x" * depth
        serialized = "".join(f"<{name}>" for name in tag.split("><")) + "x"
        closing = "".join(f"</{name}>" for name in reversed(tag.split("><")))
        text = render(flatten(serialized * depth + closing * depth), rendering=PLAIN)
        assert text.count("x") == depth
        assert len(text) < 200 * len(html)


def test_a_table_of_layout_with_code_in_it_keeps_its_text() -> None:
    cell = "<td><p>Long words around the code.</p><code>a = 1</code></td>"
    page = read_page(f"<table><tr><td></td><td></td>{cell}<td></td><td></td></tr></table>")
    text = render(page, rendering=Rendering(markup=False))
    assert "Long words around the code." in text and "a = 1" in text
