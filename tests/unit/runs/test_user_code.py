"""The user's own file and the modules beside it: copied together, compared together, and used from the copy."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

from tuning.basics.wording import stack, users_lines
from tuning.data.registry import file_source
from tuning.errors import CustomerError, DefinitionError, RunError
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


def test_a_frame_of_many_columns_as_a_csv_is_read_can_have_one_more(tmp_path: Path) -> None:
    wide = pd.DataFrame({f"c{number}": [1.0, 2.0] for number in range(300)})
    wide.to_csv(tmp_path / "wide.csv", index=False)

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        frame["more"] = 2 * frame["c7"]
        return frame

    rows = file_source(str(tmp_path / "wide.csv"), {}).read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pandas' PerformanceWarning
        assert apply_prepare(prepare, rows)["more"].tolist() == [2.0, 4.0]
    assert "more" not in rows


def test_of_a_traceback_the_users_own_lines_are_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def prepare(frame):\n    return frame['gone'] * 2\n")
    prepare = load_function(f"{tmp_path}/mine.py:prepare")
    with pytest.raises(CustomerError) as found:
        apply_prepare(prepare, pd.DataFrame({"a": [1.0], "b": [2.0]}))
    assert found.value.__cause__ is not None
    whole = stack(found.value.__cause__)
    assert "apply_prepare" in whole
    assert "site-packages" in whole
    first, second, *marks, last = users_lines(whole).splitlines()
    assert first.endswith('mine.py", line 2, in prepare')
    assert second.strip() == "return frame['gone'] * 2"
    assert all(set(line) <= set(" ~^") for line in marks)
    assert last == "KeyError: 'gone'"


@pytest.mark.parametrize("text", ["Timeout (0:00:01)!", "killed", ""])
def test_what_is_no_traceback_stays_as_it_is(text: str) -> None:
    assert users_lines(text) == text


def test_a_traceback_of_libraries_and_of_ours_alone_stays_as_it_is() -> None:
    with pytest.raises(DefinitionError) as found:
        load_function("json:no_such")
    text = stack(found.value).partition("Traceback")[2]
    ours = "".join(line for line in text.splitlines(keepends=True) if "test_user_code" not in line)
    assert users_lines(ours) == ours
