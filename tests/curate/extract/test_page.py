import random

from resiliparse.parse.html import HTMLTree, Node, NodeType

from foresail.curate.extract.page import Page, read_page

PIECES = [
    *("<p>", "</p>", "<div class='a b'>", "</div>", "<b>", "</b>", "<br>", "<img alt='<'>", "<a b='\"'>"),
    *("<table>", "<tr>", "<td>", "</table>", "<ul><li>", "</ul>", "<select><option>", "</select>"),
    *("<script>a && b</script>", "<style>a>b{}</style>", "<!-- <b> -->", "<textarea><i>", "</textarea>"),
    *("<math><mi>", "</math>", "<svg><path/>", "</svg>", "<pre>\n\n x", "</pre>", "<xmp><b></xmp>", "a<b c>"),
    *("&lt;", "&amp;lt;", "&nbsp;", "]]>", "\x00", "ไทย 中文", " \n\t ", "x"),
]  # fmt: skip


def random_soup(seed: int) -> str:
    chance = random.Random(seed)
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(60)))


def dom_texts(node: Node) -> list[tuple[str, str]]:
    """Every text with the name of its element, by resiliparse's own tree."""
    texts = []
    for child in node:
        if child.type == NodeType.TEXT:
            assert child.parent is not None
            texts.append((child.parent.tag or "", child.value or ""))
    return texts


def page_texts(page: Page) -> list[tuple[str, str]]:
    return [
        (page.names[parent], data)
        for name, parent, data in zip(page.names, page.parents, page.data, strict=True)
        if not name
    ]


def joined(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours in one element are one text: a comment may have parted them."""
    result: list[tuple[str, str]] = []
    for name, text in texts:
        if name == "style":
            continue
        if result and result[-1][0] == name:
            text = result.pop()[1] + text
        result.append((name, text))
    return result


def test_page_has_the_texts_of_the_dom() -> None:
    for seed in range(300):
        html = random_soup(seed)
        document = HTMLTree.parse(html).document
        assert document is not None
        assert joined(page_texts(read_page(html))) == joined(dom_texts(document)), html


def test_subtrees_nest() -> None:
    for seed in range(300):
        page = read_page(random_soup(seed))
        for node, (parent, end) in enumerate(zip(page.parents, page.ends, strict=True)):
            assert parent < node < end <= (page.ends[parent] if parent >= 0 else len(page.names))
        assert page.ends[0] == len(page.names)
        for node, name in enumerate(page.names):
            if name:
                assert all(page.parents[child] == node for child in page.children(node))


def test_attributes_are_unescaped() -> None:
    page = read_page('<!DOCTYPE html><p title="a<b>c&quot;d&amp;lt;" CLASS=x>t')
    node = page.names.index("p")
    assert page.attributes(node) == {"title": 'a<b>c"d&lt;', "class": "x"}
    assert page.attribute(node, "title") == 'a<b>c"d&lt;'
    assert page.attribute(node, "id") == ""
    assert page.text(0) == "t"


def test_a_script_is_one_text() -> None:
    page = read_page("<p>x<script>if (a<b) '</p>' && c</script>y")
    script = page.names.index("script")
    assert page.text(script) == "if (a<b) '</p>' && c"
    assert page.data[page.ends[script]] == "y"
