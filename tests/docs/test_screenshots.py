"""The pictures of pages that the docs show are there, small, and made by `make screenshots`."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM, NO_CHROMIUM
from paths import ROOT
from screenshots import FOLDER, HEIGHT, MOST_BYTES, NAMES, WIDTH, take

SHOWN_IN = {
    "report": "docs/report.md",
    "comparison": "docs/compare.md",
    "notebook": "docs/notebooks.md",
    "service": "docs/service.md",
}


def assert_small_pictures(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == sorted(f"{name}.png" for name in NAMES)
    for file in folder.iterdir():
        content = file.read_bytes()
        assert content.startswith(b"\x89PNG"), file.name
        assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (WIDTH, HEIGHT), file.name
        assert len(content) < MOST_BYTES, file.name


def test_the_pictures_are_there_and_shown() -> None:
    assert_small_pictures(FOLDER)
    for name, page in SHOWN_IN.items():
        assert f"](images/{name}.png)" in (ROOT / page).read_text(encoding="utf-8"), page
    assert sorted(SHOWN_IN) == sorted(NAMES)
    assert "](docs/images/report.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "screenshots.py" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_the_pictures_are_made_anew_by_a_kernel_a_server_and_a_browser(tmp_path: Path) -> None:
    take(tmp_path)
    assert_small_pictures(tmp_path)
