"""The pictures of pages in the docs: `python tests/helpers/screenshots.py [FOLDER]`, by `make screenshots`.

A real kernel, a real server and the installed Chromium show what users see; FOLDER is `docs/images` by default.
"""

from __future__ import annotations

import html
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import comparisons
import nbformat
import yaml
from browser import chromium
from chaos import environment
from nbclient import NotebookClient
from paths import ROOT
from playwright.sync_api import Page
from served_folder import ServedFolder

from tuning.cli.demo import make_demo

FOLDER = ROOT / "docs" / "images"
NAMES = ("report", "comparison", "notebook", "service")
MOST_BYTES = 150_000
WIDTH, HEIGHT = 1000, 760
SECONDS = 300.0
ZONES = 22  # of the demo: those with a hundred trips and more
GIVEN = {
    "data": "customers/*.csv",
    "target": "minutes",
    "metric": "mae",
    "models": ["ridge", "extra_trees"],
    "pool": "auto",
}
CELL = """\
from tuning import TuneRunner

result = TuneRunner(data="customers/*.csv", target="minutes", metric="mae",
                    models=["ridge", "extra_trees"], pool="auto", trials=6).run("week-48")
result"""
STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 16px; } .cell { display: grid; grid-template-columns: 5rem 1fr; }
.cell > span { font-family: monospace; color: #307fc1; padding-top: 9px; } .cell > div { overflow: hidden; }
pre { background: #f5f5f5; border: 1px solid #e0e0e0; padding: 8px; margin: 0 0 12px; font-size: 13px; }"""


def take(folder: Path) -> None:
    """Make all pictures anew."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        work = Path(made)
        make_demo(work, ZONES)
        notebook = work / "notebook.html"
        notebook.write_text(_notebook(work), encoding="utf-8")
        comparison = work / "comparison.html"
        comparisons.run(work, "compared", customers=10, seeds=3, trials=16).save(comparison)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(1000 * SECONDS)
        for name, file in {
            "notebook": notebook,
            "report": work / "week-48" / "report.html",
            "comparison": comparison,
        }.items():
            page.goto(file.as_uri())
            _save(page, folder, name)
        with _served(work) as (server, run):
            page.goto(server.url)
            (token,) = json.loads((work / "config" / "service-tokens.json").read_text()).values()
            page.get_by_label("Token of your team").fill(str(token))
            page.keyboard.press("Enter")
            page.get_by_role("link", name="taxi", exact=True).click()
            page.get_by_role("link", name="midtown-center").wait_for()
            assert page.url.endswith(run)
            _save(page, folder, "service")


def _save(page: Page, folder: Path, name: str) -> None:
    page.screenshot(path=folder / f"{name}.png")


def _notebook(work: Path) -> str:
    """What a kernel shows of the cell, in a frame like that of a notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=int(SECONDS), resources={"metadata": {"path": str(work)}}
    )
    client.execute(env=environment())
    shown = "".join(output.get("data", {}).get("text/html", "") for output in notebook.cells[0].outputs)
    cells = (
        f"<span>In [1]:</span><div><pre>{html.escape(CELL)}</pre></div>",
        f"<span>Out[1]:</span><div>{shown}</div>",
    )
    body = "".join(f'<div class="cell">{cell}</div>' for cell in cells)
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{body}'


@contextmanager
def _served(work: Path) -> Iterator[tuple[ServedFolder, str]]:
    """A server with a finished run, and its id."""
    server = ServedFolder(work)
    try:
        definition = work / "taxi.yaml"
        definition.write_text(yaml.safe_dump({"name": "taxi", **GIVEN, "trials": 6}))
        with server.client() as client:
            yield server, client.submit(definition).wait(SECONDS).id
    finally:
        server.end()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
