"""The table of a report does in a browser what it promises: search, filters, sorting, details on demand."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest
from builders import definition, write_customers

from tuning import TuneRunner
from tuning.reporting.data_table import DataColumn, DataTable
from tuning.reporting.html import Page, Section

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [EVIL, *(f"customer-{number}" for number in range(1, 120))]
    columns = [
        DataColumn("customer", names, narrow=True),
        DataColumn("status", ["no_model", *["ok"] * 119], filtered=True),
        DataColumn("gain", [None, *(((7 * number) % 120) / 8 for number in range(1, 120))]),
        DataColumn(
            "notes", [None if number % 2 else f"left out: column {number}" for number in range(120)], detail=True
        ),
        DataColumn("reason", ["set `encoding: <auto>`, or ` alone", *[None] * 119]),
    ]
    path = tmp_path_factory.mktemp("browser") / "report.html"
    page = Page("Customers", "All is well.", [Section("Customers", [DataTable(columns, "customers", "")])])
    path.write_text(page.html(), encoding="utf-8")
    return path


def rows(report: Path, **view: str) -> list[list[str]]:
    """The cells that the browser shows with a view in the address."""
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body(report, **view))]


def body(report: Path, **view: str) -> str:
    table = shown(report, **view).partition('<div class="data">')[2]
    return re.findall(r"<tbody>(.*?)</tbody>", table, flags=re.S)[0]


def shown(report: Path, **view: str) -> str:
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    address = f"{report.as_uri()}#{urlencode(view)}"
    profile = f"--user-data-dir={report.parent / 'profile'}"
    return subprocess.run([*command, profile, address], capture_output=True, text=True, check=True, timeout=100).stdout


def names(found: list[list[str]]) -> list[str]:
    return [re.sub("<[^>]*>", "", cells[0]) for cells in found]


def test_the_first_customers_are_shown_and_their_ids_are_text(report: Path) -> None:
    page = shown(report)
    found = rows(report)
    assert len(found) == 50
    assert names(found)[0] == "&lt;img src=x onerror=alert(1)&gt;"
    assert "1 to 50 of 120 customers" in page


def test_customers_are_searched_by_all_their_texts(report: Path) -> None:
    assert names(rows(report, find="COLUMN 44")) == ["customer-44"]
    assert rows(report, find="nobody") == []


def test_customers_are_filtered_and_sorted(report: Path) -> None:
    assert len(rows(report, status="no_model")) == 1
    gains = [float(cells[2]) for cells in rows(report, status="ok", sort="gain", down="1")]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] == 14.88


def test_words_of_a_definition_stand_out_in_a_reason(report: Path) -> None:
    (cells,) = rows(report, status="no_model")
    assert cells[-1] == "set <code>encoding: &lt;auto&gt;</code>, or ` alone"


def test_details_are_there_when_a_row_is_opened(report: Path) -> None:
    assert "left out" not in body(report)
    assert "left out: column 2<" in body(report, open="customer-2")
    assert "left out: column 76<" in body(report, open="customer-76"), "on the second page of the table"


def test_a_runs_report_shows_its_customers(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 3)
    (tmp_path / "data" / "c0001.csv").write_text("a,b,c,y\n1,2,3,4\n")
    runner = TuneRunner({**definition(tmp_path / "data", trials=2), "report": True})
    runner.run(tmp_path / "run", in_process=True, progress=False)
    report = tmp_path / "run" / "report.html"
    assert "2 of 3 customers have a model" in shown(report)
    assert names(rows(report)) == ["c0000", "c0002", "c0001"]
    (cells,) = rows(report, status="no_model")
    assert "fewer than min_rows: 4." in cells[-1]
