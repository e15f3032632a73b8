"""Spread studies: isolated from each other, resumable from their records, and real under Tune's controller."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chaos import hazards, write_hazards
from spread_workers import STEPS, Workers, decisions, step_report, study, together

from tuning import RunResult
from tuning.execution.jobs import EndedStudy
from tuning.execution.spread.open_studies import AT_ONCE
from tuning.execution.spread.running import SpreadRun
from tuning.execution.spread.spread_study import HangLimits, SpreadStudy
from tuning.execution.spread.state import BegunTrial
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import begin
from tuning.study.build import PlannedStudy


@pytest.mark.long
def test_an_easy_and_a_hard_customer_take_the_decisions_they_take_alone(tmp_path: Path) -> None:
    alone = {}
    for name in ("easy", "hard"):
        live = study(name)
        Workers(together(tmp_path / name, [live]), slots=1).work()
        alone[name] = decisions(live)
    both = [study("easy"), study("hard")]
    Workers(together(tmp_path / "both", both), slots=2).work()  # two studies, one trial of each at a time
    for live in both:
        assert decisions(live) == alone[live.study.id]
        assert {record.state for record in live.records} == {"finished", "stopped"}


@pytest.fixture(scope="module", params=["random", "optuna", "hyperopt"])
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    """An algorithm, and the decisions of its study where no driver dies."""
    live = study("acme", request.param)
    Workers(together(tmp_path_factory.mktemp("whole"), [live]), slots=1).work()
    return request.param, [row[:5] for row in decisions(live)]


def begun(live: SpreadStudy) -> dict[int, BegunTrial]:
    """The trials that run, as their checkpoints of now say."""
    return {
        number: BegunTrial(
            live.study.id,
            "",
            number,
            trial.config,
            tuple(step_report(step.step, step.score, trial.seconds) for step in trial.steps),
            f"tune/{number}",
        )
        for number, trial in live.live.items()
        if trial.steps
    }


@pytest.mark.long
@pytest.mark.parametrize("died_after", [1, 7, 40, 77])
def test_a_resumed_driver_takes_the_same_decisions_where_one_trial_runs_at_a_time(
    tmp_path: Path, undisturbed: tuple[str, list[Any]], died_after: int
) -> None:
    algorithm, expected = undisturbed
    first = study("acme", algorithm)
    Workers(together(tmp_path / "cut", [first]), slots=1).work(died_after)
    second = study("acme", algorithm)
    second.resume(first.records, begun(first))
    assert second.records == first.records
    assert [trial.checkpoint for trial in second.waiting] == [f"tune/{number}" for number in first.live]
    again = Workers(together(tmp_path / "cut", [second], "0002-b"), slots=1)
    again.work()
    assert [row[:5] for row in decisions(second)] == expected


@pytest.mark.parametrize("algorithm", ["random", "optuna", "bohb"])
@pytest.mark.parametrize("died_after", [7, 40, 77])
def test_a_resumed_driver_tells_what_is_recorded_and_goes_on_with_what_ran(
    tmp_path: Path, algorithm: str, died_after: int
) -> None:
    first = study("acme", algorithm)
    Workers(together(tmp_path / "cut", [first]), slots=3).work(died_after)
    second = study("acme", algorithm)
    second.resume(first.records, saved := begun(first))
    assert second.records == first.records
    assert set(saved) <= {trial.number for trial in second.waiting} <= set(first.live)
    for trial in second.waiting:
        if trial.number in saved:
            assert (trial.config, len(trial.steps)) == (saved[trial.number].config, len(saved[trial.number].reports))
    Workers(together(tmp_path / "cut", [second], "0002-b"), slots=3).work()
    assert sorted(record.trial for record in second.records) == list(range(20))
    assert second.records[: len(first.records)] == first.records
    assert len({record.told for record in second.records} | {record.suggested for record in second.records}) == 40
    assert {record.state for record in second.records} == {"finished", "stopped"}


def test_a_step_that_a_trial_has_made_twice_is_taken_up_once(tmp_path: Path) -> None:
    """A trainer of Ray Train that has lost a worker reports steps again."""
    first = study("acme")
    Workers(together(tmp_path, [first]), slots=1).work(3)
    (saved,) = begun(first).values()
    twice = replace(saved, reports=saved.reports[:2] + saved.reports)
    second = study("acme")
    second.resume((), {saved.number: twice})
    assert [[step.step for step in trial.steps] for trial in second.waiting] == [[1, 2, 3]]


def test_trials_of_records_that_are_lost_run_again(tmp_path: Path) -> None:
    first = study("acme")
    Workers(together(tmp_path, [first]), slots=3).work(60)
    kept = first.records[2:]
    second = study("acme")
    second.resume(kept, {})
    assert second.records == kept
    lost = {record.trial for record in first.records} - {record.trial for record in kept}
    assert {trial.number for trial in second.waiting} == {*first.live, *lost}
    Workers(together(tmp_path, [second], "0002-b"), slots=3).work()
    assert sorted(record.trial for record in second.records) == list(range(20))


def test_a_trial_that_ended_its_workers_ends_its_study_also_after_a_resume(tmp_path: Path) -> None:
    first = study("acme")
    Workers(together(tmp_path, [first]), slots=3).work(60)
    first.end(failed := min(first.live), died=True)
    second = study("acme")
    second.resume(first.records, {})
    assert (second.crashed, second.done) == (first.crashed, True) == ((failed, None), True)


def test_the_scheduler_hears_of_recorded_trials_before_the_first_one_that_runs(tmp_path: Path) -> None:
    """Else the first trials after each resume would be compared with nothing."""
    first = study("acme", "random", scheduler="asha")
    Workers(together(tmp_path, [first]), slots=1).work(40)
    best = min(first.records, key=lambda record: record.score or 0.0)
    second = study("acme", "random", scheduler="asha")
    second.resume(first.records, {})
    studies = together(tmp_path, [second], "0002-b")
    found = studies.next()
    assert found is not None
    told = [studies.result(found[0], step_report(step, (best.score or 0.0) + 1000.0)) for step in range(1, STEPS)]
    assert any(told)


def test_a_study_whose_algorithm_fails_ends_alone_with_its_reason(tmp_path: Path) -> None:
    good, bad = study("good"), study("bad")
    calls = iter(range(100))

    def suggest(trial_id: str) -> Any:
        if next(calls) == 3:
            raise RuntimeError("out of ideas")
        return {"x": 0.5}

    bad.core.searcher.suggest = suggest
    ended = list[EndedStudy]()
    studies = together(tmp_path, [bad, good], ended=ended)
    Workers(studies, slots=4).work()
    assert "out of ideas" in str(bad.failure)
    assert len(good.records) == 20
    assert [each.study.id for each in ended] == ["bad", "good"]


@pytest.mark.parametrize("where", ["scheduler", "stop_all", "__call__", "on_trial_end"])
def test_a_study_whose_scheduler_or_rule_fails_ends_alone_with_its_reason(tmp_path: Path, where: str) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("no such rung")

    good, bad = study("good"), study("bad", stop={"target": 0.0})
    if where == "scheduler":
        bad.core.scheduler_for = fail
    else:
        bad.core.rules = [type("Broken", (type(bad.core.rules[0]),), {where: fail})(0.0, "min")]
    ended = list[EndedStudy]()
    studies = together(tmp_path, [bad, good], ended=ended)
    Workers(studies, slots=4).work()
    part = "scheduler" if where == "scheduler" else "stopping rule"
    assert str(bad.failure).startswith(f"the {part} failed while ")
    assert "ZeroDivisionError: no such rung" in str(bad.failure)
    assert len(good.records) == 20
    assert [each.study.id for each in ended] == ["bad", "good"]


def test_a_study_whose_searcher_cannot_be_built_ends_alone_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = PlannedStudy.searcher

    def searcher(planned: PlannedStudy) -> Any:
        if planned.study.customer.id == "c0001":
            raise ImportError("libgomp.so.1: cannot open shared object file")
        return usual(planned)

    monkeypatch.setattr(PlannedStudy, "searcher", searcher)
    write_hazards(tmp_path / "data", 3, {})
    owned = begin(hazards(tmp_path / "data", placement="spread").definition, str(tmp_path / "run"))
    SpreadRun(owned, WorkerRun.from_owned(owned), lambda _: None).work(lambda: True)
    owned.lease.release()
    (record,) = RunResult(owned.directory).study_records
    assert (record.customer, record.status) == ("c0001", "no_model")
    assert str(record.reason) == "ImportError: libgomp.so.1: cannot open shared object file"


def test_studies_are_made_when_it_is_their_turn_and_let_go_when_they_have_ended(tmp_path: Path) -> None:
    ended = list[EndedStudy]()
    searchers: list[weakref.ref[Any]] = []

    def coming() -> Iterator[SpreadStudy]:
        for number in range(3 * AT_ONCE):
            assert number - len(ended) < AT_ONCE
            live = study(f"customer-{number}", "random", n_trials=2)
            searchers.append(weakref.ref(live.core.searcher))
            yield live

    studies = together(tmp_path, coming(), ended=ended)
    assert len(searchers) == AT_ONCE
    Workers(studies, slots=4).work()
    assert len(ended) == 3 * AT_ONCE
    assert studies.done
    gc.collect()
    assert [searcher for searcher in searchers if searcher() is not None] == []


def test_a_searcher_with_nothing_to_suggest_is_asked_again_as_long_as_a_trial_runs(tmp_path: Path) -> None:
    live = study("acme", "random")

    def suggest(trial_id: str) -> Any:
        return None if live.live or trial_id == "00002" else {"x": 0.5}

    live.core.searcher.suggest = suggest
    Workers(together(tmp_path, [live]), slots=2).work()
    assert [record.trial for record in live.records] == [0, 1]
    assert live.done
    assert str(live.core.exhausted_by) == "the algorithm has no configuration after 2 trials"


def test_a_trial_that_makes_no_step_for_long_is_taken_for_one_that_hangs(tmp_path: Path) -> None:
    live = study("acme")
    live.hangs = HangLimits(patience=600.0)
    studies = together(tmp_path, [live])
    first, second = (found[0] for found in (studies.next(), studies.next()) if found is not None)
    assert not studies.overdue(first, worked=9000.0, idle=599.0)
    assert studies.overdue(first, worked=9000.0, idle=601.0)
    studies.end(first, died=True)
    why = "it made no step for 600 seconds, which is taken for a hang; limits.trial_seconds sets another"
    assert [(record.state, str(record.reason)) for record in live.records] == [("failed", why)]
    assert live.crashed is None  # the study goes on
    for step in range(1, STEPS + 1):
        studies.result(second, step_report(step, 1.0, 20.0 * step))
    studies.end(second)
    third = studies.next()
    assert third is not None
    assert not studies.overdue(third[0], worked=9000.0, idle=8999.0)  # one has taken 180 seconds
    assert studies.overdue(third[0], worked=9001.0, idle=9001.0)


def test_a_step_told_twice_is_no_news(tmp_path: Path) -> None:
    live = study("acme")
    studies = together(tmp_path, [live])
    found = studies.next()
    assert found is not None
    for _ in range(3):
        assert studies.result(found[0], step_report(1, 2.0)) is False
    studies.end(found[0])
    assert [len(record.steps) for record in live.records] == [1]


def test_one_checkpoint_is_kept_of_a_running_trial_and_none_of_an_ended_one(tmp_path: Path) -> None:
    live = study("acme")
    studies = together(tmp_path, [live])
    folders = [tmp_path / "tune" / f"checkpoint_{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir(parents=True)
    ids = [found[0] for found in (studies.next(), studies.next()) if found is not None]
    for name, folder in ((ids[0], folders[0]), (ids[1], folders[1]), (ids[0], folders[2]), (ids[0], folders[3])):
        studies.saved(name, str(folder))
    assert all(folder.exists() for folder in folders)
    studies.end(ids[1])
    studies.close()
    assert [folder.exists() for folder in folders] == [False, False, False, True]
    studies.saved(ids[0], "/somewhere/else")  # not this run's: neither kept in mind nor deleted
    assert live.live[0].checkpoint == "tune/checkpoint_3"
