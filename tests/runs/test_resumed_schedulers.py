"""Schedulers whose state lives in memory only: a driver or worker that dies costs the study in hand, nothing else."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import definition, tuner_of, write_customers
from chaos import Crash, crashing, duplicates, truth
from sklearn.metrics import r2_score

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import RunError
from tuning.notes import texts
from tuning.steps import Step

QUIET = {"progress": False, "in_process": True}
STEPS = 9
PAIRS = [("hyperband", "random"), ("hyperband", "optuna"), ("bohb", "bohb"), ("pbt", "random"), ("asha", "optuna")]


class Training:
    """An objective that can go on from a state; its process ends at one of its steps, once."""

    def __init__(self, ends_at: int = 0) -> None:
        self.ends_at, self.steps = ends_at, 0

    def __call__(self, config: Mapping[str, float], data: Any, state: Any) -> Iterator[Step]:
        done, loss = state or (0, 9.0)
        for step in range(done + 1, STEPS + 1):
            self.steps += 1
            if self.steps == self.ends_at:
                raise KeyboardInterrupt  # in the main thread the one exception of training that is not its trial's
            loss = 0.7 * loss + 0.3 * ((config["x"] - data["shift"].mean()) ** 2 + config["y"] ** 2)
            yield Step(step, loss, get_state=lambda now=(step, loss): now)


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("customers")
    for number in range(2):
        (folder / f"c{number}.csv").write_text(f"shift\n{number / 2}\n")
    return folder


def runner(
    customers: Path, scheduler: str, algorithm: str, training: Training | None = None, **more: Any
) -> TuneRunner:
    fields = {"data": str(customers / "*.csv"), "scheduler": scheduler, "algorithm": algorithm, "steps": STEPS}
    return tuner_of(training or Training(), **{**fields, "trials": 12, "slots": 2, **more})


@pytest.fixture(scope="module")
def undisturbed(customers: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    known: dict[tuple[str, str], Any] = {}

    def find(scheduler: str, algorithm: str) -> Any:
        if (scheduler, algorithm) not in known:
            training = Training()
            run = str(tmp_path_factory.mktemp("whole") / "run")
            known[scheduler, algorithm] = (
                truth(runner(customers, scheduler, algorithm, training).run(run, **QUIET)),
                training.steps,
            )
        return known[scheduler, algorithm]

    return find


@pytest.mark.parametrize(("scheduler", "algorithm"), PAIRS)
@pytest.mark.parametrize("share", [0.6])
def test_a_driver_that_dies_in_the_middle_of_a_study(
    customers: Path, undisturbed: Any, tmp_path: Path, scheduler: str, algorithm: str, share: float
) -> None:
    expected, steps = undisturbed(scheduler, algorithm)
    run = str(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        runner(customers, scheduler, algorithm, Training(int(share * steps))).run(run, **QUIET)
    before = {record.key: record.started for record in RunResult(run).trial_records}
    result = runner(customers, scheduler, algorithm).run(run, resume=True, **QUIET)
    assert truth(result) == expected
    assert duplicates(result) == []
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()


@pytest.mark.parametrize(
    ("scheduler", "algorithm", "when"),
    [*((*pair, "during") for pair in PAIRS), ("hyperband", "optuna", "before"), ("hyperband", "optuna", "after")],
)
def test_a_driver_that_dies_while_it_records(
    customers: Path,
    undisturbed: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheduler: str,
    algorithm: str,
    when: str,
) -> None:
    run = str(tmp_path / "run")
    eager = runner(customers, scheduler, algorithm)
    eager.timing = Timing(parts_s=0.0)
    for after in (1, 2):  # and the one that goes on dies too
        with crashing(monkeypatch, after, when, only="records/"), pytest.raises(Crash):
            eager.run(run, resume=after > 1, **QUIET)
    result = eager.run(run, resume=True, **QUIET)
    assert truth(result) == undisturbed(scheduler, algorithm)[0]
    assert duplicates(result) == []


def test_a_population_of_models_goes_on_and_its_winner_predicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_customers(tmp_path / "data", 2)
    more = {"search_space": "sgd", "scheduler": "pbt", "algorithm": "random", "trials": 9, "seed": 4}
    populated = TuneRunner(**definition(tmp_path / "data", **more))
    populated.timing = Timing(parts_s=0.0)
    with crashing(monkeypatch, 2, "before", only="records/"), pytest.raises(Crash):
        populated.run(str(tmp_path / "run"), **QUIET)
    result = populated.run(str(tmp_path / "run"), resume=True, **QUIET)
    assert truth(result) == truth(populated.run(str(tmp_path / "whole"), **QUIET))
    winners = [result.trial_records[9 * n + (record.trial or 0)] for n, record in enumerate(result.study_records)]
    assert any(winner.lineage for winner in winners)
    for winner, record in zip(winners, result.study_records, strict=True):
        assert (winner.customer, winner.config) == (record.customer, record.config)
        assert ("refitted along" in texts(record.notes)) == (winner.lineage is not None)
        frame = pd.read_csv(tmp_path / "data" / f"{record.customer}.csv")
        assert r2_score(frame["y"], result.model(record.customer).predict(frame)) > 0.8


@pytest.mark.parametrize("scheduler", ["hyperband", "pbt"])
def test_more_trials_are_refused_where_the_trials_of_a_study_are_one_race(
    customers: Path, tmp_path: Path, scheduler: str
) -> None:
    run = str(tmp_path / "run")
    runner(customers, scheduler, "random", trials=6).run(run, **QUIET)
    with pytest.raises(RunError, match="the trials of a study are one race, which has ended"):
        runner(customers, scheduler, "random").run(run, resume=True, **QUIET)


def test_an_object_that_can_be_called_is_an_objective(tmp_path: Path) -> None:
    partial = functools.partial(lambda config, shift: (config["x"] - shift) ** 2, shift=0.5)
    assert len(tuner_of(partial, trials=2).run(str(tmp_path / "run"), **QUIET).trial_records) == 2
