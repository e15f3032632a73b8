"""A run begins in forks of its own process, and needs Ray only where these are not soon through with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import definition, write_customers
from chaos import duplicates, truth
from comparisons import fields
from model_cases import make_frame
from without_ray import refuse_ray

from search_spaces import Float, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.compare import compare
from tuning.errors import RunError, RunInterrupted
from tuning.execution.crash_log import FOLDER
from tuning.models.model_files import SavedFile, saved_files
from tuning.preprocessing.task import MULTICLASS
from tuning.records.schema import StudyRecord
from tuning.runs.progress import Counter
from tuning.study.record import worker_name

SPACE = SearchSpace([Float("x", -10, 10, default=1.0)])
QUIET = {"progress": False, "in_process": True}
BY_PAIRS = {(1, 0), (2, 0), (1, 3), (2, None)}  # slots, and how the process ends: that looks like success on both


@pytest.fixture(autouse=True)
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_ray(monkeypatch)


def square(config: Mapping[str, float]) -> float:
    return config["x"] ** 2


def tuner(objective: Callable[..., object] = square, **fields: Any) -> TuneRunner:
    """Two slots and one study, so that its trials are spread."""
    given = {
        "search_space": SPACE,
        "metric": "loss",
        "mode": "min",
        "trials": 12,
        "slots": 2,
        "mlflow": False,
        "report": False,
    }
    return TuneRunner(**{**given, "objective": objective, **fields})


def left(run: Path) -> list[Path]:
    """What workers that were ended have left for those who come after them."""
    return list((run / FOLDER).rglob("b0*")) if (run / FOLDER).exists() else []


def test_a_small_job_needs_no_ray_and_has_the_records_of_a_run_in_one_process(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 3)
    runner = TuneRunner(**definition(tmp_path / "data", placement="auto"))
    here = worker_name()
    result = runner.run(str(tmp_path / "forked"), progress=False)
    assert truth(result) == truth(runner.run(str(tmp_path / "here"), **QUIET))
    assert result.unfinished == 0
    assert left(tmp_path / "forked") == []
    assert here not in {record.worker for record in result.trial_records}
    result.model(result.leaderboard()["customer"][0])


@pytest.mark.long
def test_models_ensembles_and_a_pool_are_the_same_bytes_in_one_process_and_in_forks(tmp_path: Path) -> None:
    for customer in range(2):
        make_frame(MULTICLASS, rows=60, seed=customer).to_csv(tmp_path / f"c{customer}.csv", index=False)
    fields = {"data": str(tmp_path / "*.csv"), "target": "y", "trials": 5, "slots": 2, "pool": "on"}
    runner = TuneRunner(**fields, models=["logistic", "extra_trees", "knn"], mlflow=False, report=False)
    here, forked = (
        runner.run(str(tmp_path / way), progress=False, in_process=way == "here") for way in ("here", "forked")
    )
    assert truth(here) == truth(forked)
    files = [
        {record.customer: [(file.name, file.sha256) for file in _files(run, record)] for record in run.study_records}
        for run in (here, forked)
    ]
    assert files[0] == files[1]
    assert min(map(len, files[0].values())) > 2, "an ensemble"


def _files(result: RunResult, record: StudyRecord) -> Iterator[SavedFile]:
    return saved_files(result.directory, str(record.model_path), record.model_sha256)


def test_workers_open_no_file_outside_the_roots_and_read_what_the_run_has_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_customers(tmp_path / "data", 2)
    (tmp_path / "data" / "c0001.csv").rename(tmp_path / "elsewhere.csv")
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    monkeypatch.setenv("TUNING_DATA_ROOTS", str(tmp_path / "data"))
    runner = TuneRunner(**definition(tmp_path / "data", placement="auto"))
    board = runner.run(str(tmp_path / "files"), progress=False).leaderboard().set_index("customer")
    assert board["model"].notna().to_dict() == {"c0000": True, "link": False}
    assert board["reason"]["link"].startswith(
        "link.csv is a link, or below one, that leads out of what may be read here"
    )
    table = pd.concat([pd.read_csv(tmp_path / "data" / "c0000.csv").assign(shop=shop) for shop in ("a", "b")])
    table.to_csv(tmp_path / "data" / "table.csv", index=False)
    runner = TuneRunner(
        **definition(tmp_path / "data", data=str(tmp_path / "data" / "table.csv"), by="shop", placement="auto")
    )
    assert runner.run(str(tmp_path / "table"), progress=False).leaderboard()["model"].notna().tolist() == [True, True]


def test_a_function_is_tuned_without_ray_and_resumed_with_more_trials(tmp_path: Path) -> None:
    assert tuner().plan().placement == "spread"
    first = tuner().run(str(tmp_path / "forked"), progress=False)
    more = tuner(trials=20).run(str(tmp_path / "forked"), progress=False, resume=True)
    assert truth(more) == truth(tuner(trials=20).run(str(tmp_path / "here"), **QUIET))
    assert duplicates(more) == []
    known = {record.key: record.started for record in first.trial_records}
    assert known.items() <= {record.key: record.started for record in more.trial_records}.items()


def test_a_small_comparison_needs_no_ray(tmp_path: Path) -> None:
    found = compare(**fields(tmp_path), algorithms="random,optuna", seeds=1, trials=3, progress=False)
    assert found.final.budget.tolist() == [3, 3, 3]


@pytest.mark.parametrize("placement", ["packed", "spread"])
def test_a_placement_that_is_said_is_one_on_ray(tmp_path: Path, placement: str) -> None:
    with pytest.raises(RunError, match="Ray was wanted"):
        tuner(placement=placement).run(str(tmp_path / "run"), progress=False)


def test_a_cluster_that_is_named_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "there:6379")
    with pytest.raises(RunError, match="Ray was wanted"):
        tuner().run(str(tmp_path / "run"), progress=False)


@pytest.mark.parametrize(
    ("slots", "status"),
    [
        pytest.param(
            slots, status, id=f"{ending}-{place}", marks=() if (slots, status) in BY_PAIRS else pytest.mark.slow
        )
        for status, ending in ((0, "status 0"), (3, "status 3"), (None, "a signal"))
        for slots, place in ((1, "packed"), (2, "spread"))
    ],
)
def test_what_ends_its_process_ends_no_driver_and_its_study_goes_to_ray(
    tmp_path: Path, slots: int, status: int | None
) -> None:
    armed = True

    def exits(config: Mapping[str, float]) -> float:
        if armed and config["x"] < 0:
            os.kill(os.getpid(), signal.SIGKILL) if status is None else os._exit(status)
        return square(config)

    run = tmp_path / "run"
    with pytest.raises(RunError, match="Ray was wanted"):
        tuner(exits, slots=slots).run(str(run), progress=False)
    assert len(left(run)) == (2 if slots == 1 else 0)  # Ray's workers see which trial it was; Tune counts for itself
    armed = False
    result = tuner(exits, slots=slots).run(str(run), progress=False, resume=True)
    assert truth(result) == truth(tuner(slots=slots).run(str(tmp_path / "here"), **QUIET))


ENDS = """
import os, signal
from pathlib import Path

from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error


def end(place, values):
    if place == PLACE and max(values) > 90 and Path(ARMED).exists():
        END


def prepare(rows):
    end("prepare", rows["y"])
    return rows


def score(y_true, y_pred):
    end("metric", y_true)
    return mean_absolute_error(y_true, y_pred)


class Model(Ridge):
    def fit(self, X, y, sample_weight=None):
        end("fit", y)
        return super().fit(X, y, sample_weight)
"""
ENDINGS = {
    "status 0": "os._exit(0)",
    "status 1": "os._exit(1)",
    "a signal": "os.kill(os.getpid(), signal.SIGKILL)",
}


def quick(place: str, ending: str) -> bool:
    """One place with the ending that looks like success; every ending is tried above, in an objective."""
    return (place, ending) == ("fit", "status 0")


@pytest.mark.parametrize(
    ("place", "ending"),
    [
        pytest.param(place, ending, marks=() if quick(place, ending) else pytest.mark.slow)
        for place in ("prepare", "metric", "fit")
        for ending in ENDINGS
    ],
)
def test_customers_whose_code_ends_its_process_are_left_to_ray_with_whoever_came_after_them(
    tmp_path: Path, place: str, ending: str
) -> None:
    """Whatever the status: a fork is through with its work when it says so."""
    armed = tmp_path / "armed"
    armed.touch()
    code = ENDS.replace("PLACE", repr(place)).replace("ARMED", repr(str(armed))).replace("END", ENDINGS[ending])
    (tmp_path / "mine.py").write_text(code)
    write_customers(tmp_path / "data", 5)
    odd = tmp_path / "data" / "c0002.csv"
    odd.write_text(odd.read_text() + "0,0,0,99\n" * 5)
    own: dict[str, dict[str, Any]] = {
        "prepare": {"prepare": f"{tmp_path}/mine.py:prepare"},
        "metric": {"metric": f"{tmp_path}/mine.py:score", "mode": "min"},
        "fit": {"models": {"mine": f"{tmp_path}/mine.py:Model"}, "search_space": None},
    }
    runner = TuneRunner(**definition(tmp_path / "data", placement="auto", save_models=False, **own[place]))
    run = tmp_path / "run"
    with pytest.raises(RunError, match="Ray was wanted"):
        runner.run(run, progress=False)
    assert len(left(run)) == 2, "Ray's workers see which trial it was"
    armed.unlink()
    result = runner.run(run, progress=False, resume=True)
    assert dict(result.leaderboard().set_index("customer")["status"]) == {f"c{n:04d}": "ok" for n in range(5)}


@pytest.mark.parametrize("slots", [1, 2], ids=["packed", "spread"])
def test_what_hangs_is_left_to_ray_and_nobody_is_blamed_for_it(tmp_path: Path, slots: int) -> None:
    def hangs(config: Mapping[str, float]) -> float:
        if config["x"] < 0:
            threading.Event().wait()
        return square(config)

    run = tmp_path / "run"
    runner = tuner(hangs, slots=slots)
    runner.timing = Timing(first_trial_s=0.1, ray_start_s=0.1)
    with pytest.raises(RunError, match="Ray was wanted"):
        runner.run(str(run), progress=False)
    assert left(run) == []
    result = tuner(slots=slots).run(str(run), progress=False, resume=True)
    assert truth(result) == truth(tuner(slots=slots).run(str(tmp_path / "here"), **QUIET))


@pytest.mark.parametrize("slots", [1, 2], ids=["packed", "spread"])
def test_trials_are_counted_while_ray_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    ray_starts, counters, counted = tmp_path / "starts", list[Counter](), list[int]()

    class Kept(Counter):
        def __post_init__(self) -> None:
            super().__post_init__()
            counters.append(self)

    def waits(config: Mapping[str, float]) -> float:
        while not ray_starts.exists():
            time.sleep(0.01)
        return square(config)

    def starting(plan: object) -> bool:
        ray_starts.touch()
        until = time.monotonic() + 60
        while not counters[0].counted.done_trials and time.monotonic() < until:
            time.sleep(0.01)
        counted.append(counters[0].counted.done_trials)
        raise RunError("Ray was wanted.")

    monkeypatch.setattr("tuning.driver.session.Counter", Kept)
    monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", starting)
    runner = tuner(waits, slots=slots)
    runner.timing = Timing(first_trial_s=0.1, ray_start_s=0.1)
    with pytest.raises(RunError, match="Ray was wanted"):
        runner.run(str(tmp_path / "run"), progress=False)
    assert counted[0] > 0


@pytest.mark.parametrize("slots", [1, 2], ids=["packed", "spread"])
def test_ctrl_c_ends_the_forks_and_loses_nothing_that_is_recorded(tmp_path: Path, slots: int) -> None:
    def interrupts(config: Mapping[str, float]) -> float:
        if config["x"] < 0:
            os.kill(os.getppid(), signal.SIGINT)
            threading.Event().wait()
        return square(config)

    run = tmp_path / "run"
    with pytest.raises(RunInterrupted, match="resume=True"):
        tuner(interrupts, slots=slots).run(str(run), progress=False)
    assert left(run) == []
    result = tuner(slots=slots).run(str(run), progress=False, resume=True)
    assert truth(result) == truth(tuner(slots=slots).run(str(tmp_path / "here"), **QUIET))
