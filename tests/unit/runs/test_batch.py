"""Many files of new rows in one pass: each row has its answer where it stood, whatever single files and models do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chaos import Crash, crashing
from click.testing import CliRunner

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.errors import DataError
from tuning.models.customer_model import CustomerModel
from tuning.runs.prediction.files import BatchCounts, predict_files
from tuning.runs.prediction.workers import PredictionWorkers, answer_all
from tuning.runs.results import RunModels
from tuning.storage.backend import TEMPORARY

pytestmark = pytest.mark.long
GIVEN: Mapping[str, Any] = {"target": "y", "trials": 2, "mlflow": False, "report": False, "slots": 1}
ENDS = """
import os, signal

def prepare(frame):
    if frame["a"].max() > 1000:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame
"""


def rows(seed: int, zones: str = "", count: int = 60, *, target: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=count).round(3), "code": rng.choice(["007", "x", "y,z"], count)})
    if zones:
        frame.insert(0, "zone", rng.choice(list(zones), count))
    return frame.assign(y=np.where(frame["a"] + rng.normal(size=count) > 0, "yes", "no")) if target else frame


def run(folder: Path, **more: Any) -> RunResult:
    result = TuneRunner(**{**GIVEN, **more}).run(str(folder), in_process=True, progress=False)
    assert isinstance(result, RunResult)
    return result


def batch(result: RunResult, data: Path | str, output: Path, **more: Any) -> BatchCounts:
    return predict_files(RunModels(result), str(data), str(output), **{"processes": 1, **more})


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run of three customers in one table."""
    folder = tmp_path_factory.mktemp("keyed")
    rows(0, "ABC", 200, target=True).to_csv(folder / "table.csv", index=False)
    return run(folder / "run", data=str(folder / "table.csv"), by=["zone"], models=["knn"])


@pytest.fixture(scope="module")
def passed(keyed: RunResult, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, BatchCounts]:
    """Three files of new rows, one of them with a customer that the run does not have; their answers, and counts."""
    folder = tmp_path_factory.mktemp("passed")
    (folder / "new" / "below").mkdir(parents=True)
    rows(1, "CABD").to_csv(folder / "new" / "one.csv", index=False)
    rows(2, "BA").to_parquet(folder / "new" / "below" / "two.parquet", index=False)
    rows(3, "A", 5).to_csv(folder / "new" / "three.csv.gz", index=False)
    return folder / "new", folder / "out", batch(keyed, folder / "new", folder / "out")


def test_each_row_has_its_own_customers_answer_where_it_stood(
    keyed: RunResult, passed: tuple[Path, Path, BatchCounts]
) -> None:
    new, out, counts = passed
    assert (counts.files, counts.rows, counts.broken) == (3, 125, {})
    assert list(counts.without) == ["D"]
    one, two = pd.read_csv(out / "one.csv", dtype=str), pd.read_parquet(out / "below" / "two.parquet")
    given = pd.read_csv(new / "one.csv", dtype=str)
    pd.testing.assert_frame_equal(one[given.columns], given)  # to the letter
    pd.testing.assert_frame_equal(two[["zone", "a", "code"]], rows(2, "BA"))
    assert len(pd.read_csv(out / "three.csv.gz")) == 5
    for path, found in ((new / "one.csv", one), (new / "below" / "two.parquet", two)):
        alone = keyed.predict(path)
        assert found["prediction"].fillna("").tolist() == alone["prediction"].fillna("").tolist()
        np.testing.assert_array_equal(found["probability_yes"].astype(float), alone["probability_yes"])
        assert (found["run"] == "run").all()
    unknown = one["zone"] == "D"
    assert unknown.any()
    assert set(one.loc[unknown, "answer"]) == {"none"}
    assert set(one.loc[~unknown, "answer"]) == {"own"}
    assert counts.predicted == 125 - unknown.sum()


def test_a_process_loads_each_model_once(keyed: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    model, models = keyed.model, RunModels(keyed)

    def counted(customer: object = None, *, allow_code: bool = False, pool: bool = False) -> CustomerModel:
        loaded.append(customer)
        return model(customer, allow_code=allow_code, pool=pool)

    monkeypatch.setattr(keyed, "model", counted)
    for _ in range(2):
        answers = answer_all(models, [("A", None), ("B", None)], None)
        assert [each.answer for each in answers] == ["own", "own"]
    assert loaded == ["A", "B"]


def test_a_repeat_does_what_is_left_and_what_has_changed(
    keyed: RunResult, passed: tuple[Path, Path, BatchCounts], tmp_path: Path
) -> None:
    new, out = (shutil.copytree(each, tmp_path / each.name) for each in passed[:2])
    for path in new.rglob("*.*"):  # a copy is another file
        source = passed[0] / path.relative_to(new)
        os.utime(path, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    done = out / "three.csv.gz"
    before = done.stat().st_mtime_ns
    (out / "one.csv").unlink()
    rows(3, "AB", 10).to_parquet(new / "below" / "two.parquet", index=False)
    counts = batch(keyed, new, out)
    assert (counts.files, counts.unchanged, counts.rows) == (2, 1, 70)
    assert done.stat().st_mtime_ns == before
    assert len(pd.read_parquet(out / "below" / "two.parquet")) == 10
    assert (out / "one.csv").read_text() == (passed[1] / "one.csv").read_text()


def test_a_file_that_is_read_in_pieces_has_the_same_answer(
    keyed: RunResult, passed: tuple[Path, Path, BatchCounts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, whole, _ = passed
    monkeypatch.setattr("tuning.data.new_rows.WINDOW_BYTES", 1)
    monkeypatch.setattr("tuning.data.formats.csv_file.PIECE_ROWS", 7)
    monkeypatch.setattr("tuning.data.formats.parquet_file.PIECE_ROWS", 7)
    monkeypatch.setattr("tuning.runs.prediction.files.MOST_AHEAD", 2)
    counts = batch(keyed, new, tmp_path / "pieces")
    assert counts.rows == 125
    two, pieces = (pd.read_parquet(folder / "below" / "two.parquet") for folder in (whole, tmp_path / "pieces"))
    pd.testing.assert_frame_equal(two, pieces)
    one, pieces = (pd.read_csv(folder / "one.csv", dtype=str) for folder in (whole, tmp_path / "pieces"))
    pd.testing.assert_frame_equal(one, pieces)


def test_a_pass_that_ends_at_any_step_is_finished_by_the_same_again(
    keyed: RunResult, passed: tuple[Path, Path, BatchCounts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, whole, _ = passed
    with PredictionWorkers(RunModels(keyed), 1) as workers:
        monkeypatch.setattr("tuning.runs.prediction.files.PredictionWorkers", lambda *_: nullcontext(workers))
        for step, moment in zip(range(1, 7), cycle(("before", "during", "after", "during"))):  # of each file two
            out = tmp_path / f"{step}-{moment}"
            with crashing(monkeypatch, step, moment), pytest.raises(Crash):
                batch(keyed, new, out)
            noted = [path for path in out.rglob("_predictions/**/*.json") if not path.name.startswith(TEMPORARY)]
            there = {path: path.stat().st_mtime_ns for path in answers(out)}
            again = batch(keyed, new, out)
            assert (again.files, again.unchanged) == (3 - len(noted), len(noted))
            assert len(noted) == (step - (moment != "after")) // 2
            assert sum(path.stat().st_mtime_ns == time for path, time in there.items()) >= len(noted)
            for path in answers(whole):
                assert (out / path.relative_to(whole)).read_bytes() == path.read_bytes()
            shutil.rmtree(out)


def answers(folder: Path) -> list[Path]:
    """The files that are whole."""
    found = [path for path in folder.rglob("*.*") if path.is_file() and "_predictions" not in path.parts]
    return sorted(path for path in found if not path.name.startswith(TEMPORARY))


def test_what_is_broken_costs_itself(tmp_path: Path) -> None:
    """Customers that are files, by their names: one file cannot be read, one model ends its process."""
    (tmp_path / "mine.py").write_text(ENDS)
    (tmp_path / "data").mkdir()
    (tmp_path / "new").mkdir()
    for number, name in enumerate(("acme", "beta", "crash", "torn")):
        known = rows(number, target=True).drop(columns="code")
        known.assign(y=known["a"] * 2 + number).to_csv(tmp_path / "data" / f"{name}.csv", index=False)
        later = rows(10 + number).drop(columns="code")
        later.to_parquet(tmp_path / "new" / f"{name}.parquet", index=False)
    rows(12).drop(columns="code").assign(a=5000.0).to_parquet(tmp_path / "new" / "crash.parquet", index=False)
    (tmp_path / "new" / "torn.parquet").write_bytes((tmp_path / "new" / "acme.parquet").read_bytes()[:200])
    given = {"prepare": f"{tmp_path / 'mine.py'}:prepare", "models": ["ridge"], "trials": 1}
    result = run(tmp_path / "run", data=str(tmp_path / "data" / "*.csv"), **given)
    arguments = ["predict", "--run", result.directory.root, "--data", str(tmp_path / "new" / "*.parquet")]
    answer = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "out"), "--processes", "1"])
    assert answer.exit_code == 3, answer.output
    assert "no prediction for customer 'crash': its model has ended its process (SIGKILL)" in answer.output
    assert "no answer for the file 'torn.parquet': the file torn.parquet cannot be read" in answer.output
    assert "rows per second" in answer.output
    assert sorted(os.listdir(tmp_path / "out")) == ["_predictions", "acme.parquet", "beta.parquet", "crash.parquet"]
    for name in ("acme", "beta"):
        found = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        expected = result.model(name).predict(rows(10 + ("acme", "beta").index(name)))
        np.testing.assert_array_equal(found["prediction"], expected)
    lost = pd.read_parquet(tmp_path / "out" / "crash.parquet")
    assert len(lost) == 60
    assert lost["prediction"].isna().all()
    assert set(lost["answer"]) == {"none"}


def test_a_folder_of_its_own_input_is_refused(keyed: RunResult, passed: tuple[Path, Path, BatchCounts]) -> None:
    with pytest.raises(DataError, match=r"holds 'below/two\.parquet' of --data; name another folder"):
        batch(keyed, passed[0], passed[0])


def test_champions_that_are_not_there_are_told_and_no_run_is_looked_for(tmp_path: Path) -> None:
    given = ["--data", "x.csv", "--output", str(tmp_path / "out"), "--storage", str(tmp_path)]
    answer = CliRunner().invoke(main, ["predict", "--release", "shop", *given])
    assert answer.exit_code == 6
    assert "the newest in" not in answer.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run", "r", "--release", "c"], "--release and --run are two sources of models"),
        (["--run", "r", "acme"], "each row has its own customer's model"),
        (["--run", "r"], "--output names the folder of the answers"),
    ],
)
def test_the_command_says_what_does_not_go_together(arguments: list[str], said: str) -> None:
    answer = CliRunner().invoke(main, ["predict", "--data", "x.csv", *arguments])
    assert answer.exit_code == 2
    assert said in answer.output
