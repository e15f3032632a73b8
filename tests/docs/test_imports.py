"""Importing and planning stay light; that imports go one way is held by `lint-imports` (`make lint`)."""

from __future__ import annotations

import subprocess
import sys

import pytest
from paths import ROOT


@pytest.mark.parametrize(
    "statement",
    [
        "import tuning",
        "import search_spaces",
        "import schedulers",
        "import tuning.cli.main",
        "import tuning.definition.definition",
    ],
)
def test_importing_is_light(statement: str) -> None:
    code = f"{statement}; import sys; print([m for m in ('ray', 'mlflow', 'sklearn', 'optuna') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"
