"""Every link of a page or a lesson leads to a file, and every file of this repository that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lessons import LESSONS, read
from paths import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *LESSONS])


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    if page.suffix == ".ipynb":
        return "\n".join(cell.source for cell in read(page).cells if cell.cell_type == "markdown")
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", text_of(page))
    local = [link for link in links if "://" not in link]
    for link in local:
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", text_of(target), flags=re.M)
            assert heading in [re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings], link


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_file_that_a_page_names_exists(page: Path) -> None:
    pattern = r"`((?:tests|tuning|schedulers|search_spaces|benchmarks|examples)/[\w/.-]+)`"
    files = set(re.findall(pattern, text_of(page)))
    assert [file for file in sorted(files) if not (ROOT / file).exists() and file != "benchmarks/out"] == []
