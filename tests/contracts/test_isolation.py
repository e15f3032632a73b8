"""One customer among others goes wrong in a hundred ways, one way at a time: the others' results are the same bits.

Each kind of trouble is a run of four customers in this process, one shard, one after the other, the bad one second.
What is said of the three good ones is compared with a run without the fourth, which is made once per form of data. The
bad one has its row on the leaderboard in any case: with a model, or with a reason that a person can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from click.testing import CliRunner
from isolation_code import METRICS, OBJECTIVES, PREPARES, mood, objective
from isolation_data import CELLS, COLUMNS, FILES, TABLES, frame_of
from isolation_models import MODELS, Fickle

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.data import balancing
from tuning.records.figures import STUDY_FIGURES, TRIAL_FIGURES

GOOD, BAD = ("a", "c", "d"), "b"
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
def one_shard() -> Iterator[None]:
    """A worker that goes through all four customers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balancing, "SHARDS_PER_SLOT", 1)
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


def check(expected: dict[str, dict[str, Any]], result: RunResult) -> None:
    found = said(result)
    for name in GOOD:
        assert repr(found[name]) == repr(expected[name])  # as text: a score that is not a number is not itself
    assert expected["a"]["row"]["status"] == "ok"
    board = result.leaderboard().set_index("customer")
    assert len(board) == 4
    row = board.loc[next(name for name in board.index if name not in GOOD)]
    assert row["status"] == "ok" or 0 < len(row["reason"]) < 1000, row["reason"]


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


@pytest.mark.parametrize("kind", [*FILES][::3])
def test_a_file_where_the_task_is_given(kind: str, references: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_good(tmp_path)
    reference = references("files", data=str(folder))
    FILES[kind](folder)
    check(reference, search(tmp_path, data=f"{folder}/*"))


@pytest.mark.parametrize("kind", FILES)
def test_a_file_before_a_run(kind: str, tmp_path: Path) -> None:
    """`tuning init` makes a definition that can be planned, and `tuning validate` has read everybody."""
    folder = write_good(tmp_path)
    FILES[kind](folder)
    made = _command(0, "init", f"{folder}/*", "--target", "y", "--output", str(tmp_path / "made.yaml"))
    assert "made.yaml is written" in made
    _command(0, "plan", str(tmp_path / "made.yaml"))
    (tmp_path / "own.yaml").write_text(json.dumps({**QUICK, "data": f"{folder}/*"}))
    said = CliRunner().invoke(main, ["validate", str(tmp_path / "own.yaml"), "--all"])
    assert said.exit_code in (0, 3), said.output
    assert " of the 4 customers read " in said.stderr
    assert not any(f"'{good}'" in line[:5] for good in GOOD for line in said.stdout.splitlines())


@pytest.mark.parametrize("kind", FILES)
def test_a_file_where_the_task_is_guessed(kind: str, references: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_good(tmp_path)
    reference = references("files, guessed", data=str(folder), task="auto")
    FILES[kind](folder)
    check(reference, search(tmp_path, data=f"{folder}/*", task="auto"))


def _command(code: int, *arguments: str) -> str:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == code, answer.output
    return answer.output


@pytest.mark.parametrize("over", ["rows", "columns"])
@pytest.mark.parametrize("form", ["files", "frames"])
def test_who_is_over_a_limit_has_no_say(form: str, over: str, tmp_path: Path) -> None:
    """The task, the metric and the positive class are guessed from customers that can have a model."""
    labels = {name: frame_of(name).assign(y=["quit", "stay", "stay", "stay"] * 6) for name in GOOD}
    large = pd.concat([frame_of(BAD).assign(y=np.arange(24) % 3)] * (30 if over == "rows" else 20), ignore_index=True)
    if over == "columns":
        large = pd.concat([large, pd.DataFrame(1, large.index, [f"x{n}" for n in range(120)])], axis=1)
    fields = {"task": "auto", "search_space": "logistic"}
    data: Any = {**labels, BAD: large}
    if form == "files":
        for name, frame in data.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        data = {name: str(tmp_path / f"{name}.csv") for name in data}
    (tmp_path / "reference").mkdir()
    reference = search(tmp_path / "reference", data={name: data[name] for name in GOOD}, **fields)
    check(said(reference), search(tmp_path, data=data, **fields))


def table_with(change: Callable[[pd.DataFrame], pd.DataFrame] | None) -> pd.DataFrame:
    """The customers' rows in one table, mixed."""
    frames = {name: frame_of(name).assign(id=name).astype(object) for name in GOOD}
    if change is not None:
        frames[BAD] = change(frame_of(BAD).assign(id=BAD).astype(object))
    table = pd.concat(frames.values(), ignore_index=True)
    return table.sort_values("n", kind="stable", ignore_index=True, key=lambda values: np.arange(len(values)) % 24)


@pytest.mark.parametrize("kind", CELLS)
def test_cells_of_a_keyed_csv(kind: str, references: Callable[..., Any], tmp_path: Path) -> None:
    table_with(None).to_csv(tmp_path / "good.csv", index=False)
    reference = references("keyed csv", data=str(tmp_path / "good.csv"), by="id")
    table_with(CELLS[kind]).to_csv(tmp_path / "t.csv", index=False)
    check(reference, search(tmp_path, data=str(tmp_path / "t.csv"), by="id"))


@pytest.mark.parametrize("kind", CELLS)
def test_cells_of_a_keyed_frame(kind: str, references: Callable[..., Any], tmp_path: Path) -> None:
    reference = references("keyed frame", data=table_with(None), by="id")
    check(reference, search(tmp_path, data=table_with(CELLS[kind]), by="id"))


@pytest.mark.parametrize("kind", TABLES)
def test_a_keyed_parquet_table(kind: str, references: Callable[..., Any], tmp_path: Path) -> None:
    def written(name: str, frame: pd.DataFrame | None) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        frames = [frame_of(good).assign(id=good) for good in GOOD]
        TABLES[kind](folder, pd.concat(frames, ignore_index=True), frame)
        return folder

    reference = references(f"parquet {kind}", data=str(written("good", None)), by="id")
    check(reference, search(tmp_path, data=str(written("bad", frame_of(BAD).assign(id=BAD))), by="id"))


@pytest.mark.parametrize("role", ["feature", "target"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_a_frame(kind: str, role: str, references: Callable[..., Any], tmp_path: Path) -> None:
    good = {name: frame_of(name) for name in GOOD}
    reference = references("frames", data=good)
    values = COLUMNS[kind]()
    bad = frame_of(BAD).assign(**{"y" if role == "target" else "odd": values})
    check(reference, search(tmp_path, data={**good, BAD: bad}))


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


@pytest.mark.parametrize(
    ("place", "fields", "kind"),
    [(place, fields, kind) for place, fields, kinds in CODE for kind in kinds],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_users_code(
    place: str,
    fields: dict[str, Any],
    kind: str,
    references: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = {name: frame_of(name) for name in GOOD}
    reference = references(place, data=good, **fields)
    monkeypatch.setitem(mood, "now", kind)
    numpy, scikit_learn = np.geterr(), sklearn.get_config()
    try:
        result = search(tmp_path, data={**good, BAD: frame_of(BAD, scale=1e6)}, **fields)
    finally:
        np.seterr(**numpy)
        sklearn.set_config(**scikit_learn)
    check(reference, result)


def test_there_are_a_hundred_kinds() -> None:
    kinds = (FILES, CELLS, CELLS, TABLES, COLUMNS, COLUMNS, PREPARES, METRICS, MODELS, OBJECTIVES)
    assert sum(map(len, kinds)) >= 100
