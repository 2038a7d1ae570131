"""What each table shows can be written whole, in every format."""

from __future__ import annotations

import csv
import json

import polars as pl
import pytest

from tests.tui.harness import explorer, go_to, press, the_page

TABLES = {
    "findings": "",
    "ranks": "",
    "ranks v": "v",
    "memory": "",
    "memory v": "v",
    "memory v v": "v v",
    "memory v v v": "v v v",
    "compare": "",
    "compare v v": "v v",
}


@pytest.mark.parametrize("name", TABLES)
async def test_all_rows_are_written(name, tmp_path):
    async with explorer((80, 24)) as pilot:
        await go_to(pilot, name.split()[0])
        await press(pilot, TABLES[name])
        page = the_page(pilot)
        export, rows = page.export(), page.table.rows()
        assert rows
        for ending in ("csv", "json", "parquet", "arrow"):
            path = tmp_path / f"table.{ending}"
            with path.open("wb") as file:
                assert export.write(file, path) == rows
        assert len(list(csv.DictReader((tmp_path / "table.csv").open()))) == rows
        assert len(json.loads((tmp_path / "table.json").read_text())["rows"]) == rows
        assert pl.read_parquet(tmp_path / "table.parquet").height == rows


async def test_ranks_are_written_as_the_command_gives_them(tmp_path):
    async with explorer((80, 24), "7") as pilot:
        path = tmp_path / "ranks.json"
        with path.open("wb") as file:
            the_page(pilot).export().write(file, path)
    document = json.loads(path.read_text())
    assert document["schema"] == "roofterm.ranks/1"
    assert [row["rank"] for row in document["rows"]] == [0, 1, 2, 3]
    assert "mark" not in document["rows"][0]
