"""`loggers`: what Ray Tune's own loggers write of each trial of a study, also after a crash and a resume."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from search_spaces import Float, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.errors import PlanError
from tuning.execution.spread.running import SpreadRun
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import begin
from tuning.runs.trial_logs import TrialLogs

SPACE = SearchSpace([Float("x", 0, 1, default=0.5)])
GIVEN: dict[str, Any] = {"metric": "loss", "mode": "min", "steps": 3, "trials": 3, "scheduler": "fifo", "mlflow": False}
ALL = ["tensorboard", "csv", "json"]


def growing(config: dict[str, float]) -> Any:
    for step in range(1, 4):
        yield {"loss": config["x"] / step, "step_squared": step**2}


def run(folder: Path, **fields: Any) -> RunResult:
    runner = TuneRunner(**{"objective": growing, "search_space": SPACE, **GIVEN, **fields})
    return runner.run(str(folder), progress=False, in_process=True, resume=True)


def files(folder: Path) -> dict[str, bytes]:
    logs = folder / "logs"
    return {str(path.relative_to(logs)): path.read_bytes() for path in sorted(logs.rglob("*")) if path.is_file()}


def scalars(path: Path) -> dict[tuple[str, int], float]:
    """By tag and step, as TensorBoard reads a file of events: length, checksum, event, checksum."""
    content, found, at = path.read_bytes(), {}, 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 8], "little")
        event = Event.FromString(content[at + 12 : at + 12 + length])
        at += 12 + length + 4
        found.update({(value.tag, event.step): value.simple_value for value in event.summary.value if value.tag})
    return found


def test_each_trial_has_a_folder_of_tunes_files(tmp_path: Path) -> None:
    result = run(tmp_path / "run", loggers=ALL)
    folders = sorted(path.relative_to(tmp_path / "run") for path in (tmp_path / "run" / "logs").glob("*/*"))
    assert [str(path) for path in folders] == [f"logs/search/{number:05d}" for number in range(3)]
    for record in result.trial_records:
        folder = tmp_path / "run" / "logs" / "search" / f"{record.trial:05d}"
        names = {path.name for path in folder.iterdir()}
        assert names == {"events.out.tfevents.trial", "params.json", "progress.csv", "result.json"}
        losses = [step.score for step in record.steps]
        lines = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
        assert [line["loss"] for line in lines] == losses
        assert [line["training_iteration"] for line in lines] == [1, 2, 3]
        assert [line["done"] for line in lines] == [False, False, True]
        with (folder / "progress.csv").open(newline="") as table:
            assert [float(row["loss"]) for row in csv.DictReader(table)] == losses
        assert json.loads((folder / "params.json").read_text())["x"] == record.config["x"]
        shown = scalars(folder / "events.out.tfevents.trial")
        assert [shown["ray/tune/loss", step] for step in (1, 2, 3)] == pytest.approx(losses)
        assert shown["ray/tune/step_squared", 3] == 9
        assert shown["ray/tune/score", 3] == pytest.approx(record.score)


def test_trials_of_their_own_workers_have_the_same_files(tmp_path: Path) -> None:
    run(tmp_path / "packed", loggers=ALL, placement="packed")
    runner = TuneRunner(objective=growing, search_space=SPACE, **GIVEN, loggers=ALL, placement="spread")
    owned = begin(runner.definition, tmp_path / "spread")
    owned.lease.release()
    SpreadRun(owned, WorkerRun.from_owned(owned), lambda _: None).work(lambda: False)

    def curves(folder: Path) -> dict[str, list[float]]:
        lines = {name: text.splitlines() for name, text in files(folder).items() if name.endswith("result.json")}
        return {name: [json.loads(line)["loss"] for line in each] for name, each in lines.items()}

    assert len(curves(tmp_path / "packed")) == 3
    assert curves(tmp_path / "spread") == curves(tmp_path / "packed")


def test_many_folders_are_announced(tmp_path: Path) -> None:
    given = {"objective": growing, "search_space": SPACE, **GIVEN, "loggers": "csv"}
    assert "loggers: 10,001 trials are as many folders" in str(TuneRunner(**{**given, "trials": 10_001}).plan())
    assert "as many folders" not in str(TuneRunner(**given).plan())


def test_without_loggers_nothing_is_written_and_a_resume_may_add_one(tmp_path: Path) -> None:
    run(tmp_path / "run")
    assert not (tmp_path / "run" / "logs").exists()
    run(tmp_path / "run", loggers="csv")
    assert [Path(name).name for name in files(tmp_path / "run")] == ["progress.csv"] * 3


def test_a_resume_writes_what_is_missing_and_nothing_twice(tmp_path: Path) -> None:
    run(tmp_path / "run", loggers=ALL)
    before = files(tmp_path / "run")
    lost = tmp_path / "run" / "logs" / "search" / "00001" / "result.json"  # as after a crash between two files
    lost.unlink()
    run(tmp_path / "run", loggers=ALL, trials=4)
    after = files(tmp_path / "run")
    assert {name: after[name] for name in before if "00001" not in name} == {
        name: content for name, content in before.items() if "00001" not in name
    }
    assert sorted(name for name in after if name not in before) == sorted(
        f"search/00003/{name}" for name in ("events.out.tfevents.trial", "params.json", "progress.csv", "result.json")
    )
    assert len(lost.read_text().splitlines()) == 3
    assert len((lost.parent / "progress.csv").read_text().splitlines()) == 4  # replaced, not appended to


def test_a_trial_that_failed_at_once_and_a_score_that_is_none_are_logged(tmp_path: Path) -> None:
    def odd(config: dict[str, float]) -> float:
        if config["x"] == 0.5:  # the first trial's
            raise ValueError("no")
        return math.nan

    run(tmp_path / "run", objective=odd, steps=1, trials=2, loggers=ALL)
    logs = tmp_path / "run" / "logs" / "search"
    assert (logs / "00000" / "result.json").read_text() == ""
    assert math.isnan(json.loads((logs / "00001" / "result.json").read_text())["loss"])


def test_a_logger_that_fails_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def full(self: object, records: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(TrialLogs, "_write", full)
    assert run(tmp_path / "run", loggers=ALL).unfinished == 0
    assert "logs of trials are missing: OSError: no space left on device; a resume writes them" in caplog.text


def test_what_tensorboard_needs_is_said_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.planning.search_checks.find_spec", lambda name: None)
    with pytest.raises(PlanError, match=r"tensorboard needs the package tensorboardX.*: pip install tensorboardX"):
        run(tmp_path / "run", loggers="tensorboard")
    assert run(tmp_path / "run", loggers="csv").unfinished == 0


def test_figures_with_names_of_tunes_are_logged_beside_them(tmp_path: Path) -> None:
    taken = ["score", "done", "timestamp", "training_iteration", "trial_id", "config", "time_total_s"]

    def objective(config: dict[str, float]) -> Any:
        for step in (1, 2):
            yield {"loss": config["x"] / step, "free": -step, **dict.fromkeys(taken, 50.0 + step)}

    (record,) = run(tmp_path / "run", objective=objective, loggers=["csv", "json"], steps=2, trials=1).trial_records
    assert dict(record.steps[0].metrics) == {"free": -1.0, **dict.fromkeys(taken, 51.0)}
    (folder,) = (tmp_path / "run" / "logs").glob("*/*")
    lines = [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]
    assert [[line[f"user.{name}"] for name in taken] for line in lines] == [[51.0] * 7, [52.0] * 7]
    assert [(line["score"], line["done"], line["free"]) for line in lines] == [(0.5, False, -1.0), (0.25, True, -2.0)]
    with open(folder / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["user.done"], row["done"], row["trial_id"]) for row in rows] == [
        ("51.0", "False", "search_00000"),
        ("52.0", "True", "search_00000"),
    ]
