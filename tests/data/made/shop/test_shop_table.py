"""Product tables of one's own: how columns are found, and what is said of tables that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shop_tables import write_table

from foresail.data.made.generators import files_of, generate
from foresail.data.made.shop.read_table import read_table

ROWS = [
    {"Artikel": "Lampe", "Marke": "Ardo", "Preis": "$1,234.50", "Farbe": "rot", "Menge": 3, "nr": "a1"},
    {"Artikel": "Lampe", "Marke": "Ardo", "Preis": 20, "Farbe": "blau", "Menge": 0, "nr": "a2"},
    {"Artikel": "Lampe", "Marke": "Ardo", "Preis": 21, "Farbe": "blau", "Menge": 0, "nr": "a3"},
    {"Artikel": "Stuhl", "Marke": None, "Preis": None, "Farbe": None, "Menge": None, "nr": "b1"},
]
NAMED = {"title": "Artikel", "brand": "Marke", "price": "Preis", "stock": "Menge", "id": "nr"}


def test_columns_are_named_and_rows_of_one_name_are_one_product(tmp_path: Path) -> None:
    path = tmp_path / "artikel.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    lamp, chair = read_table(path, NAMED).products
    assert [(v.id, v.price, v.in_stock, v.options) for v in lamp.variants] == [
        ("a1", 123450, True, (("Farbe", "rot"),)),
        ("a2", 2000, False, (("Farbe", "blau"),)),  # a3 says the same
    ]
    assert (chair.brand, chair.variants[0].price, chair.variants[0].options) == (None, None, ())


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("sku,cost\n1,2\n", "", "has no column title or name; .* its columns are sku, cost"),
        ("name,cost\nlamp,2\n", ",price=costs", "has no column 'costs', which price=… names; did you mean cost?"),
        ("name,price\nlamp,much\n", "", r"shop.csv:2: price is much, which is no price"),
        ("name,price\nlamp,-3\n", "", r"shop.csv:2: price is -3, which is no price"),
        ("name,price\nlamp,3,4\n", "", "shop.csv:2: not as many fields as the 2 columns"),
        ("name,stock\nlamp,soon\n", "", "shop.csv:2: stock is soon; write true or false"),
        ("name,price\n,3\n", "", "shop.csv:2: name is empty"),
        ("name,price\n", "", "is empty"),
        ("name,price\nlamp,3\n", "", r"no rows for product-info, .* has no attr.* name the columns with attr"),
        ("name,price\nlamp,3\n", ",tasks=numericle", "tasks=numericle names 'numericle'; did you mean numerical?"),
        ("name,price\nlamp,3\n", ",languages=en+xx", "names 'xx'; "),
        ("name,price\nlamp,3\n", ",split=dev", "unknown split 'dev'; use one of train, test, test-products"),
        ("name,price\nlamp,3\n", ",colour=red", "unknown shop-tasks option 'colour'"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said(tmp_path: Path, text: str, options: str, message: str) -> None:
    (tmp_path / "shop.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        generate(f"shop-tasks:table={tmp_path / 'shop.csv'},count=5{options}")


def test_a_table_without_a_column_says_which_tasks_to_leave_out(tmp_path: Path) -> None:
    full = write_table(tmp_path / "full.csv", seed=1).read_text().splitlines()
    path = tmp_path / "bare.csv"
    # without the columns category, price and stock
    path.write_text("\n".join(",".join([*line.split(",")[:2], *line.split(",")[5:]]) for line in full) + "\n")
    with pytest.raises(
        ValueError, match=r"no rows for .*classification.*: bare.csv has no .*; .* tasks="
    ) as error:
        generate(f"shop-tasks:table={path},count=10")
    tasks = str(error.value).rpartition("tasks=")[2]
    rows = generate(f"shop-tasks:table={path},count=50,tasks={tasks}")
    assert len(rows) == len(rows[:]) == 50


def test_a_table_is_needed_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shop-tasks needs a table"):
        generate("shop-tasks:count=5")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        generate(f"shop-tasks:table={tmp_path / 'no.csv'},count=5")
    (tmp_path / "db.json").write_text("[]")
    with pytest.raises(ValueError, match="has no products"):
        generate(f"shop-tasks:table={tmp_path / 'db.json'},count=5")
    assert (
        files_of("shop-tasks:table=a.csv,count=5") == [Path("a.csv")] and files_of("arithmetic:count=5") == []
    )


def test_names_decide_the_split_so_that_a_longer_table_keeps_it(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", seed=1)
    before = {product.name: product.split for product in read_table(path, {}).products}
    with path.open("a") as file:
        file.writelines(f"new {n},Ardo,home,5.00,1,red,,,\n" for n in range(40))
    after = {product.name: product.split for product in read_table(path, {}).products}
    assert before.items() <= after.items() and {*after.values()} == {"train", "test"}


def test_a_few_rows_that_cannot_be_read_are_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"lamp {number},{number}.50,red" for number in range(1, 41)]
    rows[3], rows[7], rows[9] = "l" * 200 + ",3,red", "lamp,free,red", "lamp,3"
    path = tmp_path / "shop.csv"
    path.write_text("name,price,color\n" + "\n".join(rows) + "\n")
    table = read_table(path, {})
    assert [product.variants[0].id for product in table.products] == [
        str(number) for number in range(1, 41) if number not in (4, 8, 10)
    ]
    assert "3 of 40 rows cannot be read and are left out; the first: " in caplog.text
    path.write_text("name,price,color\n" + "\n".join(rows[:20]) + "\n")
    with pytest.raises(ValueError, match=r"shop.csv:11: not as many fields .* so are 2 other rows of 20"):
        read_table(path, {})


def test_prices_of_32_bits_and_cells_without_a_number_are_read(tmp_path: Path) -> None:
    path = tmp_path / "shop.jsonl"
    path.write_text('{"name": "lamp", "price": 19.989999771118164}\n{"name": "chair", "price": NaN}\n')
    assert [product.variants[0].price for product in read_table(path, {}).products] == [1999, None]
