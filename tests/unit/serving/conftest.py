"""A run whose customers get all kinds of answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from shops import run_of, write_shops


@pytest.fixture(scope="session")
def shops_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `runs` with the run `monday` in it; to be copied."""
    folder = tmp_path_factory.mktemp("shops")
    write_shops(folder / "data")
    run_of(folder / "data", folder / "runs" / "monday")
    return folder / "runs"


@pytest.fixture
def storage(shops_run: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(shops_run, tmp_path / "runs"))
