"""docs/architecture.md shows the packages that there are, in their order, and names files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from paths import ROOT
from sklearn.linear_model import LinearRegression

from tuning import TuneRunner

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# What a run has only when it uses Ray, has a pool, compares algorithms, is promoted or has estimators without an import
# path.
SOMETIMES = {
    "champions",
    "pool",
    "reports",
    "log.txt",
    "shards",
    "logs",
    "train",
    "predictions",
    "tune",
    "in_progress",
    "estimators",
    "curves.parquet",
    "comparison.html",
}


def between(mark: str) -> str:
    return PAGE.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0]


def rows(mark: str) -> list[list[str]]:
    table = [line for line in between(mark).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1:]]


def test_the_packages_are_drawn_in_the_order_in_which_they_import() -> None:
    drawn = re.findall(r"^([a-z_]+)  ", between("packages"), flags=re.M)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["name"] == "Packages import one way"]
    assert drawn == [name for layer in layers for name in re.split(r" [:|] ", layer)]
    folder = ROOT / "tuning"
    there = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(drawn) == there - {"__init__"}


@pytest.mark.parametrize("row", rows("changes"), ids=lambda row: row[0])
def test_a_change_goes_into_one_file_or_folder_that_exists(row: list[str]) -> None:
    change, place, then = row
    paths = re.findall(r"`([a-z_]+/[a-z_./]*)`", place)
    assert len(paths) == 1 or change == "a message's wording"
    for path in paths + re.findall(r"`([a-z_]+/[a-z_./]*)`", then):
        assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file(), path


@pytest.mark.parametrize("row", rows("changes"), ids=lambda row: row[0])
def test_a_name_in_a_row_is_in_a_file_of_that_row(row: list[str]) -> None:
    places = [ROOT / path for path in re.findall(r"`([a-z_]+/[a-z_./]*)`", " ".join(row))]
    files = [file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])]
    text = " ".join(file.read_text(encoding="utf-8") for file in files)
    names = re.findall(r"`([A-Za-z_]+)`", " ".join(row))
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:tuning|tests|search_spaces|schedulers)/[a-z_./]*)`", PAGE))
    named |= {f"tuning/{path}" for path in re.findall(r"`([a-z_]+/[a-z_]+\.py)`", between("flow"))}
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_a_run_directory_holds_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, migrated_database: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def prepare(frame):\n    return frame\n")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.repeat(["a", "b"], 20), "x": rng.normal(size=40), "y": rng.normal(size=40)})
    TuneRunner(data=frame, by="shop", target="y", prepare="mine.py:prepare", models=[LinearRegression()], trials=1).run(
        "run", in_process=True, progress=False
    )
    shown = {name.strip("/") for row in rows("run directory") for name in re.findall(r"`([^`]+)`", row[0])}
    assert {path.name for path in Path("run").iterdir()} | SOMETIMES == shown
