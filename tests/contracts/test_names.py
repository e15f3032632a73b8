"""Names of customers, files, folders and columns: whatever is in one, it is kept, and leads to its rows and model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import tuning

from tuning import RunResult, TuneRunner
from tuning.definition.definition import define
from tuning.definition.yaml_file import read_definition
from tuning.notes import PlanCode
from tuning.planning.plan import make_plan

NAMES = [
    *("Zürich", "Zu\u0308rich", "zürich", "Ελλάδα", "北京", "بيروت", "🍕", "e\u200bf", "İstanbul", "\ufb01n", "\u212b"),
    *("a b", " before", "behind ", "two  blanks", "tab\there", "line\nbreak", "nbsp\u00a0"),
    *("O'Brien", 'say "hi"', "a,b", "a;b", "a=b", "a&b", "a+b", "a|b", "a\\b", "a:b", "a@b", "<b>", "{x}", "[1]"),
    *("#5", "50%", "a%2Fb", "100%25", "$HOME", "`x`", "~", "*", "?", "!", "-x", "--help", "=SUM(A1)", "@x", "'", "(2)"),
    *("NA", "None", "null", "nan", "true", "007", "7", "1e5", "(missing)", "self", "index", "data", "x" * 150),
]
QUICK: dict[str, Any] = {"search_space": "ridge", "trials": 1, "mlflow": False, "report": False, "slots": 2}


def rows(name: str, count: int = 24) -> pd.DataFrame:
    """Rows whose target says whose they are."""
    x = np.random.default_rng(NAMES.index(name)).normal(size=count)
    return pd.DataFrame({"x": x, "y": 1000.0 * NAMES.index(name) + x})


def written(kind: str, folder: Path) -> dict[str, Any]:
    """The rows of all names as the data of a definition."""
    frames = {name: rows(name) for name in NAMES}
    if kind == "files":
        (folder / "of files").mkdir()
        for name, frame in frames.items():
            frame.to_csv(folder / "of files" / f"{name}.csv", index=False)
        return {"data": str(folder / "of files")}
    if kind == "folders":
        for name, frame in frames.items():
            (folder / "of folders" / name).mkdir(parents=True)
            frame.to_parquet(folder / "of folders" / name / "t.parquet")
        return {"data": str(folder / "of folders")}
    table = pd.concat([frame.assign(k=name) for name, frame in frames.items()], ignore_index=True)
    if kind == "hive":
        table.to_parquet(folder / "hive", partition_cols=["k"], index=False)
    elif kind == "csv":
        table.to_csv(folder / "table.csv", index=False)
    elif kind == "parquet":
        table.to_parquet(folder / "table.parquet", index=False)
    found = {"csv": "table.csv", "parquet": "table.parquet", "hive": "hive"}
    return {"data": table if kind == "frame" else str(folder / found[kind]), "by": "k"}


@pytest.fixture(scope="module", params=["csv", "parquet", "frame", "hive", "files", "folders"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, RunResult]:
    folder = tmp_path_factory.mktemp("names # 100%")
    runner = TuneRunner(**written(request.param, folder), target="y", ensemble="none", **QUICK)
    return request.param, runner.run(folder / "run", in_process=True, progress=False)


def id_of(name: str, kind: str) -> str:
    quoted = json.dumps(name, ensure_ascii=False) if name == "(missing)" or name.startswith('"') else name
    return {"files": name, "folders": f"{name}/t"}.get(kind, quoted)


@pytest.mark.long
def test_each_customer_has_its_name_and_its_own_rows(run: tuple[str, RunResult], tmp_path: Path) -> None:
    kind, result = run
    board = result.leaderboard().set_index("customer")
    assert sorted(board.index) == sorted(id_of(name, kind) for name in NAMES)
    assert set(board["status"]) == {"ok"}
    for place, name in enumerate(NAMES):
        assert result.model(id_of(name, kind)).predict(rows(name)) == pytest.approx(1000 * place, abs=50)
    shown = tuning("leaderboard", str(result.directory.uri), "--output", "json")
    assert {row["customer"] for row in json.loads(shown.stdout)} == set(board.index)
    for name in NAMES[::20]:
        asked = [str(result.directory.uri), f"--customer={id_of(name, kind)}", "--output", "json"]
        assert json.loads(tuning("show", *asked).stdout)["customer"] == id_of(name, kind)
    (note,) = (note for note in result.notes if note.code is PlanCode.LOOK_ALIKES)
    end = "/t" * (kind == "folders")
    assert [f"{name}{end}" for name in ("Zu\u0308rich", "Zürich", "zürich")] in note.values["pairs"]


@pytest.mark.long
@pytest.mark.parametrize("run", ["csv"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_customer_is_asked_for_by_its_name(name: str, run: tuple[str, RunResult]) -> None:
    kind, result = run
    asked = [str(result.directory.uri), f"--customer={id_of(name, kind)}", "--output", "json"]
    assert json.loads(tuning("show", *asked).stdout)["customer"] == id_of(name, kind)


@pytest.mark.long
@pytest.mark.parametrize("run", ["csv"], indirect=True)
def test_new_rows_say_by_their_key_whose_they_are(run: tuple[str, RunResult], tmp_path: Path) -> None:
    path = tmp_path / "new rows.csv"
    pd.concat([rows(name, 3).assign(k=name) for name in NAMES]).to_csv(path, index=False)
    answer = tuning("predict", str(run[1].directory.uri), "--data", str(path))
    assert answer.exit_code == 0, answer.output
    found = pd.read_csv(io.StringIO(answer.stdout), keep_default_na=False)
    assert found["prediction"].tolist() == pytest.approx(
        [1000.0 * place for place in range(len(NAMES)) for _ in "abc"], abs=50
    )


def wide(kind: str, folder: Path) -> Any:
    """A table with a column of each name."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, len(NAMES))), columns=NAMES)
    frame.insert(3, "result", frame.to_numpy() @ rng.normal(size=len(NAMES)))
    if kind == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(folder / "t.parquet")
    return frame if kind == "frame" else str(folder / f"t.{kind}")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_columns_of_all_names_are_features(kind: str, tmp_path: Path) -> None:
    result = TuneRunner(data=wide(kind, tmp_path), target="result", **QUICK).run(
        tmp_path / "run", in_process=True, progress=False
    )
    (study,) = result.study_records
    model = result.model(study.customer)
    assert [column.name for column in model.columns] == NAMES
    assert study.test_score is not None
    frame = wide("frame", tmp_path)
    expected = model.predict(frame)
    for new in ("csv", "parquet"):
        found = result.predict(wide(new, tmp_path))
        assert found["prediction"].to_numpy() == pytest.approx(expected)
    assert frame["result"].to_numpy() == pytest.approx(expected, abs=2)


@pytest.mark.parametrize(("name", "other"), [*zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)])
def test_a_column_of_any_name_is_the_target_the_key_the_weight_or_left_out(
    name: str, other: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), name: rng.uniform(1, 2, size=60), "z": rng.normal(size=60)})
    frame[other] = np.where(np.arange(60) % 2 == 0, "a", "b")
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = [f"--target={name}", f"--by={other}", "--output", tmp_path / "d.yaml"]
    made = tuning("init", tmp_path / "t.csv", *options)
    assert made.exit_code == 0, made.output
    found = read_definition(tmp_path / "d.yaml")
    assert (found.target, found.by) == (name, (other,))
    plan = make_plan(found)
    assert (plan.customers, plan.spec.task) == (2, "regression")
    plain = {"data": frame, "target": "z", **QUICK}
    for given in ({"weight": name, "drop": [other]}, {"features": [name], "split": {"group": other}}):
        assert make_plan(define({**plain, **given})).customers == 1
