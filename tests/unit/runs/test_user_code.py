"""The user's own file and the modules beside it: copied together, compared together, and used from the copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from tuning.errors import CustomerError, RunError
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import apply_prepare, copy_into, load_function, name_inside

MAIN = """
import json, helper_beside, nowhere_else as other
from deeper_beside import level

def loss(config):
    import late_beside
    return helper_beside.scale() * level() + late_beside.extra + other.one
"""
BESIDE = {
    "helper_beside": "import deeper_beside\ndef scale(): return 10 * deeper_beside.level()",
    "deeper_beside": "import helper_beside\ndef level(): return 2",
    "late_beside": "extra = 0.5",
    "nowhere_else": "one = 1",
    "json": "raise ImportError('the standard library comes first')",
    "not_imported": "never = True",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {**BESIDE, "mine": MAIN}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_modules_beside_a_file_come_from_the_runs_copy(folder: Path) -> None:
    directory = RunDirectory(str(folder / "run"))
    directory.create()
    inside = copy_into(f"{folder}/mine.py:loss", directory)
    before = list(sys.path)
    for name in BESIDE:
        (folder / f"{name}.py").write_text("raise ImportError('as it is now')")
    assert load_function(inside, directory)({}) == 10 * 2 * 2 + 0.5 + 1
    assert sys.path == before
    assert not set(sys.modules) & (set(BESIDE) - {"json"})
    path = folder / "run" / inside.partition(":")[0]
    path.write_text(path.read_text().replace("extra = 0.5", "extra = 7.5"))
    with pytest.raises(RunError, match="is not what this run has written"):
        load_function(inside, directory)


@pytest.mark.parametrize(
    ("changed", "differs"), [("late_beside", True), ("deeper_beside", True), ("not_imported", False)]
)
def test_a_change_of_a_module_beside_a_file_is_a_change_of_the_file(changed: str, differs: bool, folder: Path) -> None:
    before = name_inside(f"{folder}/mine.py:loss")
    (folder / f"{changed}.py").write_text(BESIDE[changed] + "\n# changed")
    assert (name_inside(f"{folder}/mine.py:loss") != before) == differs


def test_a_prepare_that_misses_a_column_in_a_file_with_another_separator_is_told_of_it() -> None:
    rows = pd.DataFrame({"area;radius": ["1;2", "3;4"]})
    with pytest.raises(CustomerError, match=r"prepare failed: KeyError: 'area'.* set `csv: \{sep: ';'\}`"):
        apply_prepare(lambda frame: frame.assign(twice=2 * frame["area"]), rows)
