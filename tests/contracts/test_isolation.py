"""Customers among others go wrong in a hundred ways: the others' results are the same bits.

Three good customers and the bad ones run in this process, one batch, one after the other, the bad ones second. What is
said of the good ones is compared with a run without the others, which is made once per form of data. A bad one has its
row on the leaderboard in any case: with a model, or with a reason that a person can read. Kinds of trouble that cannot
hide each other are in one run; each by itself, which says whose trouble it is, is slow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from click.testing import CliRunner
from isolation_code import METRICS, OBJECTIVES, PREPARES, moods, objective, scale_of
from isolation_data import (
    CELLS,
    COLUMNS,
    FILES,
    OTHER_FILES,
    TABLE_COLUMNS,
    apart,
    frame_of,
    touched,
    write_columns,
    write_other_files,
)
from isolation_models import MODELS, Fickle

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.data import balancing
from tuning.records.figures import STUDY_FIGURES, TRIAL_FIGURES

GOOD = ("a", "c", "d")
#: What the clock, the process or the place of a run decides, and no customer: when it was and how long it took, in
#: which run and folder, by which worker; and a saved model's digest, since skops writes the addresses of objects into
#: its file. The model itself is compared.
CLOCK = {each.name for each in (*STUDY_FIGURES, *TRIAL_FIGURES) if each.clock}
ELSEWHERE = CLOCK | {"run", "worker", "model_path", "model_sha256", "model_bytes"}
QUICK = {
    "target": "y", "task": "regression", "algorithm": "random", "scheduler": "fifo", "trials": 2, "slots": 1,
    "search_space": "ridge", "mlflow": False, "report": False, "limits": {"max_rows": 500, "max_columns": 100},
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_batch() -> Iterator[None]:
    """A worker that goes through all four customers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balancing, "BATCHES_PER_SLOT", 1)
        yield


def search(folder: Path, **fields: Any) -> RunResult:
    return TuneRunner(**{**QUICK, **fields}).run(str(folder / "run"), in_process=True, progress=False)


def said(result: RunResult) -> dict[str, dict[str, Any]]:
    """All that a run says about each good customer."""
    board = result.leaderboard().set_index("customer").astype(object)
    board = board.where(board.notna(), None)  # how pandas shows what is not there depends on the whole column
    found: dict[str, dict[str, Any]] = {name: {"trials": []} for name in GOOD}
    for record in result.trial_records:
        if record.customer in found:
            steps = [{**asdict(step), "seconds": 0} for step in record.steps]
            found[record.customer]["trials"].append({**_plain(asdict(record)), "steps": steps})
    for record in result.study_records:
        if record.customer in found:
            found[record.customer]["study"] = _plain(asdict(record))
            found[record.customer]["model"] = _model(result, record)
    for name, told in found.items():
        told["row"] = {column: _whole(value) for column, value in _plain(board.loc[name].to_dict()).items()}
    return found


def _whole(value: Any) -> Any:
    """A whole number as an int: in pandas it is one only where no other customer lacks it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in ELSEWHERE}


def _model(result: RunResult, record: Any) -> Any:
    if record.model_path is None:
        return None
    description = json.loads(result.directory.read(f"{record.model_path}/model.json"))
    model = result.model(record.customer, allow_code=True)
    return {**_plain(description), "sha256": None, "fitted": joblib.hash([member.fitted for member in model.members])}


def check(expected: dict[str, dict[str, Any]], result: RunResult, kinds: Sequence[str]) -> None:
    """kinds: of the bad customers, each of which has one."""
    found = said(result)
    for name in GOOD:
        assert repr(found[name]) == repr(expected[name])  # as text: a score that is not a number is not itself
    assert expected["a"]["row"]["status"] == "ok"
    board = result.leaderboard().set_index("customer")
    bad = board.drop(index=[*GOOD]).sort_index()
    assert len(bad) == len(kinds)
    for kind, (name, row) in zip(kinds, bad.iterrows(), strict=True):
        assert row["status"] == "ok" or 0 < len(row["reason"]) < 1000, (kind, name, row["reason"])


def together(*groups: Iterable[str]) -> Any:
    """Runs with all kinds of a group, and slow ones with each kind alone."""
    all_kinds = [pytest.param(tuple(group), id=f"all{number}") for number, group in enumerate(groups)]
    alone = [pytest.param((kind,), id=kind, marks=pytest.mark.slow) for group in groups for kind in group]
    return pytest.mark.parametrize("kinds", [*all_kinds, *alone])


def names(kinds: Sequence[str]) -> list[str]:
    """Of the bad customers, after the first good one."""
    return [f"b{number:02}" for number in range(len(kinds))]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """What a run without the bad customer says, made once for each form of data."""
    made: dict[str, dict[str, dict[str, Any]]] = {}

    def reference(form: str, **fields: Any) -> dict[str, dict[str, Any]]:
        if form not in made:
            made[form] = said(search(tmp_path_factory.mktemp("reference"), **fields))
        return made[form]

    return reference


# --- data -----------------------------------------------------------------------------------------


def write_good(folder: Path) -> Path:
    (folder / "data").mkdir()
    for name in GOOD:
        frame_of(name).to_csv(folder / "data" / f"{name}.csv", index=False)
    return folder / "data"


def write_bad(folder: Path, kinds: Sequence[str]) -> None:
    """Their files beside the good ones."""
    for name, kind in zip(names(kinds), kinds, strict=True):
        (apart := folder.parent / name).mkdir()
        FILES[kind](apart)
        (written,) = apart.iterdir()
        written.rename(folder / (name + written.name[1:]))


@together(FILES)
def test_a_file_before_a_run(kinds: Sequence[str], tmp_path: Path) -> None:
    """`tuning init` makes a definition that can be planned, and `tuning validate` has read everybody."""
    folder = write_good(tmp_path)
    write_bad(folder, kinds)
    made = _command(0, "init", f"{folder}/*", "--target", "y", "--output", str(tmp_path / "made.yaml"))
    assert "made.yaml is written" in made
    _command(0, "plan", str(tmp_path / "made.yaml"))
    (tmp_path / "own.yaml").write_text(json.dumps({**QUICK, "data": f"{folder}/*"}))
    said = CliRunner().invoke(main, ["validate", str(tmp_path / "own.yaml"), "--all"])
    assert said.exit_code in (0, 3), said.output
    assert f" of the {len(GOOD) + len(kinds)} customers read " in said.stderr
    assert not any(f"'{good}'" in line[:5] for good in GOOD for line in said.stdout.splitlines())


@pytest.mark.parametrize("task", ["regression", "auto"])
@together(FILES)
def test_a_file(kinds: Sequence[str], task: str, references: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_good(tmp_path)
    reference = references(f"files, {task}", data=str(folder), task=task)
    write_bad(folder, kinds)
    check(reference, search(tmp_path, data=f"{folder}/*", task=task), kinds)


def _command(code: int, *arguments: str) -> str:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == code, answer.output
    return answer.output


@pytest.mark.parametrize("over", ["rows", "columns"])
@pytest.mark.parametrize("form", ["files", "frames"])
def test_who_is_over_a_limit_has_no_say(form: str, over: str, tmp_path: Path) -> None:
    """The task, the metric and the positive class are guessed from customers that can have a model."""
    labels = {name: frame_of(name).assign(y=["quit", "stay", "stay", "stay"] * 6) for name in GOOD}
    large = pd.concat([frame_of("b").assign(y=np.arange(24) % 3)] * (30 if over == "rows" else 20), ignore_index=True)
    if over == "columns":
        large = pd.concat([large, pd.DataFrame(1, large.index, [f"x{n}" for n in range(120)])], axis=1)
    fields = {"task": "auto", "search_space": "logistic"}
    data: Any = {**labels, "b": large}
    if form == "files":
        for name, frame in data.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        data = {name: str(tmp_path / f"{name}.csv") for name in data}
    (tmp_path / "reference").mkdir()
    reference = search(tmp_path / "reference", data={name: data[name] for name in GOOD}, **fields)
    check(said(reference), search(tmp_path, data=data, **fields), [over])


def table_with(kinds: Sequence[str]) -> pd.DataFrame:
    """The customers' rows in one table, mixed."""
    frames = [frame_of(name).assign(id=name).astype(object) for name in GOOD]
    for name, kind in zip(names(kinds), kinds, strict=True):
        frames.append(CELLS[kind](frame_of(name).assign(id=name).astype(object)))
    table = pd.concat(frames, ignore_index=True)
    return table.sort_values("n", kind="stable", ignore_index=True, key=lambda values: np.arange(len(values)) % 24)


CELL_GROUPS = apart({kind: touched(change) for kind, change in CELLS.items()})


@together(*CELL_GROUPS)
def test_cells_of_a_keyed_csv(kinds: Sequence[str], references: Callable[..., Any], tmp_path: Path) -> None:
    table_with(()).to_csv(tmp_path / "good.csv", index=False)
    reference = references("keyed csv", data=str(tmp_path / "good.csv"), by="id")
    table_with(kinds).to_csv(tmp_path / "t.csv", index=False)
    check(reference, search(tmp_path, data=str(tmp_path / "t.csv"), by="id"), kinds)


@together(*CELL_GROUPS)
def test_cells_of_a_keyed_frame(kinds: Sequence[str], references: Callable[..., Any], tmp_path: Path) -> None:
    reference = references("keyed frame", data=table_with(()), by="id")
    check(reference, search(tmp_path, data=table_with(kinds), by="id"), kinds)


def check_parquet(write: Callable[..., None], kinds: Sequence[str], folder: Path) -> None:
    """A table in Parquet with and without bad customers, whose rows are written by `write`."""
    good = pd.concat([frame_of(name).assign(id=name) for name in GOOD], ignore_index=True)
    results = []
    for bad in ((), names(kinds)):
        (place := folder / str(len(bad)) / "data").mkdir(parents=True)
        write(place, kinds, good, [frame_of(name).assign(id=name) for name in bad])
        results.append(search(place.parent, data=str(place), by="id"))
    check(said(results[0]), results[1], kinds)


@together(*apart({kind: {name} for kind, (name, *_) in TABLE_COLUMNS.items()}))
def test_columns_of_a_keyed_parquet_table(kinds: Sequence[str], tmp_path: Path) -> None:
    check_parquet(write_columns, kinds, tmp_path)


@together(*apart({kind: touched(change) for kind, change in OTHER_FILES.items()}))
def test_other_files_of_a_keyed_parquet_table(kinds: Sequence[str], tmp_path: Path) -> None:
    check_parquet(write_other_files, kinds, tmp_path)


@pytest.mark.parametrize("role", ["feature", "target"])
@together(COLUMNS)
def test_a_column_of_a_frame(kinds: Sequence[str], role: str, references: Callable[..., Any], tmp_path: Path) -> None:
    good = {name: frame_of(name) for name in GOOD}
    reference = references("frames", data=good)
    column = "y" if role == "target" else "odd"
    bad = {
        name: frame_of(name).assign(**{column: COLUMNS[kind]()}) for name, kind in zip(names(kinds), kinds, strict=True)
    }
    check(reference, search(tmp_path, data={**good, **bad}), kinds)


# --- the user's code ------------------------------------------------------------------------------

CODE: list[tuple[str, dict[str, Any], list[str]]] = [
    ("prepare", {"prepare": "isolation_code:prepare"}, PREPARES),
    ("metric", {"metric": "isolation_code:score"}, METRICS),
    ("models", {"models": [Fickle()], "search_space": None, "allow_code": True}, MODELS),
    (
        "objective",
        {
            "objective": objective, "target": None, "task": "auto", "metric": "loss", "mode": "min", "steps": 2,
            "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5}},
        },
        OBJECTIVES,
    ),
]  # fmt: skip


PLACES = [
    pytest.param(
        place, fields, tuple(group), id=f"{place}-{'-'.join(group) if len(group) == 1 else 'all'}", marks=marks
    )
    for place, fields, kinds in CODE
    for groups, marks in (([kinds], ()), ([[kind] for kind in kinds], pytest.mark.slow))
    for group in groups
]


@pytest.mark.parametrize(("place", "fields", "kinds"), PLACES)
def test_the_users_code(
    place: str,
    fields: dict[str, Any],
    kinds: Sequence[str],
    references: Callable[..., Any],
    tmp_path: Path,
) -> None:
    good = {name: frame_of(name) for name in GOOD}
    reference = references(place, data=good, **fields)
    moods.extend(kinds)
    bad = {name: frame_of(name, scale=scale_of(number)) for number, name in enumerate(names(kinds))}
    numpy, scikit_learn = np.geterr(), sklearn.get_config()
    try:
        result = search(tmp_path, data={**good, **bad}, **fields)
    finally:
        moods.clear()
        np.seterr(**numpy)
        sklearn.set_config(**scikit_learn)
    check(reference, result, kinds)


def test_there_are_a_hundred_kinds() -> None:
    tables = (FILES, CELLS, CELLS, TABLE_COLUMNS, OTHER_FILES, COLUMNS, COLUMNS)
    assert sum(map(len, (*tables, PREPARES, METRICS, MODELS, OBJECTIVES))) >= 100
