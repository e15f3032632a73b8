"""What the plan says of data that cannot be used: files that are none, columns by which every customer would fail."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shown_output import note_texts

from tuning.definition.definition import define
from tuning.definition.yaml_file import read_definition
from tuning.errors import DataError, DefinitionError, PlanError
from tuning.planning.plan import make_plan


def frame(**columns: Any) -> pd.DataFrame:
    numbers = np.random.default_rng(0).normal(size=(12, 3))
    return pd.DataFrame(numbers, columns=["a", "b", "y"]).assign(**columns)


def notes(**fields: Any) -> str:
    given = {"target": "y", "task": "regression", "search_space": "ridge", "trials": 3, "mlflow": False, "slots": 1}
    return "\n".join(note_texts(make_plan(define({**given, **fields}))))


def test_data_on_the_web_is_refused_as_data() -> None:
    with pytest.raises(DataError, match=r"data: the place 'http://x.y' cannot be opened: .* downloaded first"):
        make_plan(define({"target": "y", "data": "http://x.y/a.csv"}))


def zipped(content: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.csv", content)
    return archive.getvalue()


def as_parquet(content: bytes) -> bytes:
    return pd.read_csv(io.BytesIO(content)).to_parquet(index=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress, "a.csv holds gzip and no text: let its name end in .csv.gz"),
        (bz2.compress, "a.csv holds bzip2 and no text: let its name end in .csv.bz2"),
        (zipped, "a.csv holds a ZIP archive or a workbook and no text: unpack it"),
        (as_parquet, "a.csv holds Parquet and no text: let its name end in .parquet"),
        (
            lambda content: content.replace(b",", b";").replace(b".", b","),
            r"separated by ';': set `csv: \{sep: ';', decimal: ','\}`",
        ),
    ],
)
def test_a_csv_that_is_none_is_called_what_it_is(
    content: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(content(frame().to_csv(index=False).encode()))
    with pytest.raises(DataError, match=message):
        notes(data=str(tmp_path / "a.csv"))


def test_files_of_a_folder_that_are_left_out_are_named(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "good.csv", index=False)
    assert "left out" not in notes(data=str(tmp_path))
    (tmp_path / "README.md").touch()
    (tmp_path / "bad.csv.zip").write_bytes(zipped(b"a,y"))
    for folder in ("_temporary", "_batch=2", ".checkpoints"):
        (tmp_path / folder).mkdir()
        frame().to_csv(tmp_path / folder / "part.csv", index=False)
    frame().to_csv(tmp_path / "._good.csv", index=False)
    found = notes(data=str(tmp_path))
    assert "2 files left out, of no known format or below a name that begins with `_`:" in found
    assert "'bad.csv.zip', '_temporary/part.csv'." in found


def test_a_frame_without_columns_has_none() -> None:
    with pytest.raises(PlanError, match=r"a column 'y'\. There are none\."):
        notes(data={"one": pd.DataFrame()})


def test_a_definition_in_utf_16_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("target: y", encoding="utf-16")
    with pytest.raises(DefinitionError, match=r"is UTF-16 text; save it as UTF-8"):
        read_definition(tmp_path / "d.yaml")
    (tmp_path / "d.yaml").write_bytes(b"target: \xfcbrig")
    with pytest.raises(DefinitionError, match=r"no UTF-8 text .invalid start byte at byte 8.; save it as UTF-8"):
        read_definition(tmp_path / "d.yaml")


# --- columns that have a role ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "fields", "message"),
    [
        (
            ["big", "small"] * 6,
            {"weight": "c"},
            "weight: usable for no customer, of 2 looked at.* or no numbers",
        ),
        ([1, -1] * 6, {"weight": "c"}, "weight: .* are missing, negative, infinite or no numbers in 6 rows"),
        (["dusk", "dawn"] * 6, {"split": {"type": "time", "column": "c"}}, "split.column: .*'dusk', which is no date"),
        (["dusk", "dawn"] * 6, {"drop": ["a", "b", "c"]}, "features: nothing is left to predict 'y' from.*taken by"),
        ([[1], [2]] * 6, {"split": {"group": "c"}}, "split.group: .* lists or the like"),
    ],
)
def test_what_would_be_the_reason_of_every_customer_is_refused_once(
    column: list[object], fields: dict[str, Any], message: str
) -> None:
    both = {name: frame(c=pd.Series(column)) for name in ("one", "two")}
    with pytest.raises(PlanError, match=message):
        notes(data=both, **fields)
    if "drop" not in fields:  # one customer that has usable ones is enough
        good = {"weight": 1.0, "split": range(12)}
        notes(data={**both, "three": frame(c=good[next(iter(fields))])}, **fields)
