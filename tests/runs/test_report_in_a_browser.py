"""A page does in a browser what it promises: search, filters, sorting, details; in a narrow window and at night."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlencode

import comparisons
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from builders import definition, write_customers
from playwright.sync_api import Browser, Page, expect

from tuning import TuneRunner
from tuning.reporting import html
from tuning.reporting.data_table import DataColumn, DataTable

EVIL = "<img src=x onerror=alert(1)>"
PARAMS = ", ".join(f"a_parameter_{number}=0.123456" for number in range(12))
NARROW, WIDE = 360, 1200
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
YELLOW, VIOLET = (253, 231, 37), (68, 1, 84)  # the light and the dark end of viridis


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ids = [EVIL, *(f"customer-{number}" for number in range(1, 120))]
    columns = [
        DataColumn("customer", ids, narrow=True),
        DataColumn("status", ["no_model", *["ok"] * 119], filtered=True),
        DataColumn("gain", [None, *(((7 * number) % 120) / 8 for number in range(1, 120))]),
        DataColumn(
            "notes", [None if number % 2 else f"left out: column {number}" for number in range(120)], detail=True
        ),
        DataColumn("reason", ["set `encoding: <auto>`, or ` alone", *[None] * 119]),
    ]
    path = tmp_path_factory.mktemp("browser") / "report.html"
    trials = pd.DataFrame({"trial": ["1"], "state": ["stopped after 3"], "score": ["0.5"], "params": [PARAMS]})
    tables = [html.HtmlTable(trials, "Every trial that there was. " * 4), DataTable(columns, "customers", "")]
    page = html.Page("Customers", "All is well.", [html.Section("Customers", tables)])
    path.write_text(page.html(), encoding="utf-8")
    return path


Windows: TypeAlias = Callable[[int, Literal["light", "dark"]], Page]


@pytest.fixture(scope="module")
def windows(browser: Browser) -> tuple[Windows, list[str]]:
    """A window by its width and colours, opened once, and what pages in any of them have complained of."""
    said = list[str]()

    @cache
    def opened(width: int, colours: Literal["light", "dark"]) -> Page:
        page = browser.new_context(viewport={"width": width, "height": 700}, color_scheme=colours).new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        return page

    return opened, said


@pytest.fixture
def window(windows: tuple[Windows, list[str]]) -> Iterator[Windows]:
    """A window in which no page may complain."""
    opened, said = windows
    yield opened
    assert said == []


@pytest.fixture
def page(window: Windows) -> Page:
    """A wide window by day."""
    return window(WIDE, "light")


def rows(page: Page, report: Path, **view: str) -> list[list[str]]:
    """The cells that the browser shows with a view in the address."""
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#{urlencode(view)}")
    found: list[list[str]] = page.locator(".data tbody").evaluate(
        "body => [...body.rows].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found


def test_the_first_customers_are_shown_and_their_ids_are_text(page: Page, report: Path) -> None:
    found = rows(page, report)
    assert len(found) == 50
    assert found[0][0] == EVIL
    expect(page.get_by_text("1 to 50 of 120 customers")).to_be_visible()
    page.get_by_role("button", name="more").click()
    expect(page.get_by_text("51 to 100 of 120 customers")).to_be_visible()


def test_customers_are_searched_by_all_their_texts(page: Page, report: Path) -> None:
    assert [cells[0] for cells in rows(page, report, find="COLUMN 44")] == ["customer-44"]
    expect(page.get_by_text("1 customer (120 in all)")).to_be_visible()
    assert rows(page, report, find="nobody") == []


def test_customers_are_filtered_and_sorted(page: Page, report: Path) -> None:
    assert len(rows(page, report, status="no_model")) == 1
    gains = [float(cells[2]) for cells in rows(page, report, status="ok", sort="gain", down="1")]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == 14.88


def test_words_of_a_definition_stand_out_in_a_reason(page: Page, report: Path) -> None:
    (cells,) = rows(page, report, status="no_model")
    assert cells[-1] == "set encoding: <auto>, or ` alone"
    expect(page.locator(".data td code")).to_have_text("encoding: <auto>")


def test_details_are_there_when_a_row_is_opened(page: Page, report: Path) -> None:
    rows(page, report)
    expect(page.get_by_text("left out: column 2", exact=True)).to_have_count(0)
    page.get_by_role("button", name="customer-2", exact=True).click()
    expect(page.get_by_text("left out: column 2", exact=True)).to_be_visible()


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_a_link_to_a_customer_opens_at_that_customer(window: Windows, report: Path, width: int) -> None:
    page = window(width, "light")
    rows(page, report, open="customer-76")  # on the second page of the table
    expect(page.get_by_role("button", name="customer-76")).to_be_in_viewport()
    expect(page.get_by_text("left out: column 76")).to_be_in_viewport()
    page.evaluate("location.hash = 'open=customer-118'")  # as a link followed from here
    expect(page.get_by_text("left out: column 118")).to_be_in_viewport()


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_no_page_is_wider_than_its_window_and_texts_are_broken_into_lines(
    window: Windows, report: Path, width: int
) -> None:
    page = window(width, "light")
    rows(page, report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    caption, params = page.locator("caption").bounding_box(), page.get_by_text(PARAMS).bounding_box()
    assert caption is not None
    assert params is not None
    assert caption["x"] + caption["width"] <= width
    assert params["height"] > 40, "several lines"
    assert page.get_by_text("stopped after 3").evaluate("cell => getComputedStyle(cell).textAlign") == "left"


def test_darker_is_worse_by_day_and_at_night(window: Windows, tmp_path: Path) -> None:
    """In a comparison's heat map, whose scale stands beside it with the worst regret on top."""
    comparisons.run(tmp_path, customers=4, algorithms="random,optuna", trials=3)
    path = tmp_path / "run" / "comparison.html"
    seen = {}
    for colours in COLOURS:
        page = window(WIDE, colours)
        page.goto(path.as_uri())
        expect(page.get_by_text("darker is worse")).to_be_visible()
        seen[colours] = pixels(page.get_by_alt_text("Regret per").screenshot())
    night = seen["dark"]
    scale = night[:, int(0.8 * night.shape[1]) :]
    high, low = (np.argwhere(np.abs(scale - colour).max(axis=2) < 12)[:, 0].mean() for colour in (VIOLET, YELLOW))
    assert high < low, "rows of pixels, from the top"
    inside = (slice(10, -10), slice(10, -10))  # the corners are round, and show the page
    assert np.abs(seen["light"][inside] - night[inside]).mean() < 2, "no colour is inverted"


def pixels(png: bytes) -> np.ndarray:
    """(height, width, 3) from 0 to 255."""
    return 255 * matplotlib.image.imread(io.BytesIO(png))[..., :3]


def test_a_runs_report_shows_its_customers(page: Page, tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 3)
    (tmp_path / "data" / "c0001.csv").write_text("a,b,c,y\n1,2,3,4\n")
    runner = TuneRunner({**definition(tmp_path / "data", trials=2), "report": True})
    runner.run(tmp_path / "run", in_process=True, progress=False)
    report = tmp_path / "run" / "report.html"
    assert [cells[0] for cells in rows(page, report)] == ["c0000", "c0002", "c0001"]
    expect(page.locator(".tiles")).to_contain_text("2 of 3")
    expect(page.locator(".data tr.bad")).to_have_count(1)
    (cells,) = rows(page, report, status="no_model")
    assert "fewer than min_rows: 4." in cells[-1]
