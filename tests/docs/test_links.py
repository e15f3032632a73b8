"""Every link of a page leads to a file, and every file of this repository that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paths import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
TODAY = [page for page in PAGES if page.parent.name != "decisions"]  # a dated note may name what was there on its day


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    for link in local:
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.M)
            assert heading in [re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings], link


@pytest.mark.parametrize("page", TODAY, ids=named)
def test_a_file_that_a_page_names_exists(page: Path) -> None:
    pattern = r"`((?:tests|tuning|schedulers|search_spaces|benchmarks|examples)/[\w/.-]+)`"
    files = set(re.findall(pattern, page.read_text(encoding="utf-8")))
    assert [file for file in sorted(files) if not (ROOT / file).exists() and file != "benchmarks/out"] == []
