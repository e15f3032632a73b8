"""Stopping rules of spread studies: what they end, why the record says so, and that a resumed driver does the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from spread_workers import STEPS, Workers, decisions, step_report, study, together

from schedulers import stopping
from tuning.execution.spread.spread_study import SpreadStudy

RULES: list[dict[str, Any]] = [
    {"target": 1.0},
    {"study_plateau": 4},
    {"trial_plateau": {"steps": 2, "min_delta": 0.3}},
    {"study_plateau": {"trials": 3}, "trial_plateau": {"steps": 3, "min_delta": 0.2}},
]


def run(folder: Path, stop: Mapping[str, Any], slots: int, events: int | None = None) -> tuple[SpreadStudy, Workers]:
    live = study("acme", "random", n_trials=30, scheduler="fifo", stop=dict(stop))
    studies = together(folder, [live])
    workers = Workers(studies, slots)
    workers.work(events)
    studies.flush()
    return live, workers


def test_a_reached_target_ends_the_study_and_stops_what_runs(tmp_path: Path) -> None:
    live, _ = run(tmp_path, {"target": 1.0}, slots=3)
    assert live.closed
    assert str(live.core.ended_by).startswith("target: trial 000")
    assert len(live.records) < 30
    stopped = [record for record in live.records if record.state == "stopped"]
    assert {record.reason for record in stopped} == {live.core.ended_by}
    assert all(len(record.steps) < STEPS for record in stopped)
    assert 0 < len(stopped) <= 2
    assert live.records[0].state == "finished"


def test_a_study_without_progress_ends(tmp_path: Path) -> None:
    live, _ = run(tmp_path, {"study_plateau": 4}, slots=1)
    assert str(live.core.ended_by).startswith("study_plateau: nothing better than")
    scores = [record.score for record in live.records]
    assert min(scores[-4:]) >= min(scores[:-4])


def test_a_trial_on_its_plateau_is_finished_with_its_best_step_and_the_default_is_not_touched(tmp_path: Path) -> None:
    live, _ = run(tmp_path, {"trial_plateau": {"steps": 2, "min_delta": 0.3}}, slots=2)
    assert len(live.records) == 30
    default, *others = sorted(live.records, key=lambda record: record.trial)
    assert len(default.steps) == STEPS
    assert {record.state for record in others} == {"finished"}
    assert all(str(record.reason).startswith("trial_plateau: ") and len(record.steps) < STEPS for record in others)


def test_the_time_of_a_study_counts_over_its_attempts(tmp_path: Path) -> None:
    now = [100.0]
    live = study("acme", "random", n_trials=30, scheduler="fifo")
    live.core.rules = [stopping.parse({"study_time": 20.0})[0].build(metric="score", mode="min", clock=lambda: now[0])]
    studies = together(tmp_path, [live])
    workers = Workers(studies, slots=2)
    workers.work(4)
    now[0] += 21.0
    workers.work()
    assert str(live.core.ended_by) == "study_time: the budget of 20 s is spent"
    assert [record.state for record in live.records] == ["stopped", "finished"]  # the default went on to its end
    assert live.records[0].reason == live.core.ended_by


@pytest.fixture(scope="module", params=RULES, ids="+".join)
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], SpreadStudy]:
    """Rules, and their study where no driver dies."""
    return request.param, run(tmp_path_factory.mktemp("whole"), request.param, slots=1)[0]


@pytest.mark.long
@pytest.mark.parametrize("died_after", [3, 25, 48])
def test_a_resumed_driver_decides_as_the_first_one_did(
    tmp_path: Path, undisturbed: tuple[dict[str, Any], SpreadStudy], died_after: int
) -> None:
    stop, whole = undisturbed
    first, _ = run(tmp_path / "cut", stop, slots=1, events=died_after)
    second = study("acme", "random", n_trials=30, scheduler="fifo", stop=stop)
    second.resume(first.records, {})
    assert (second.core.ended_by, second.closed) == (first.core.ended_by, first.closed)
    again = Workers(together(tmp_path / "cut", [second], "0002-b"), slots=1)
    again.work()
    assert [row[:5] for row in decisions(second)] == [row[:5] for row in decisions(whole)]
    assert second.core.ended_by == whole.core.ended_by
    assert [str(record.reason) for record in second.records] == [str(record.reason) for record in whole.records]


def test_a_study_says_why_it_ended_also_when_all_its_trials_were_under_way(tmp_path: Path) -> None:
    live = study("acme", "random", n_trials=2, scheduler="fifo", stop={"target": 1e9})
    studies = together(tmp_path, [live])
    first, second = studies.next(), studies.next()
    assert first is not None
    assert second is not None
    for step in range(1, STEPS + 1):
        studies.result(first[0], step_report(step, 1.0))
    studies.end(first[0])
    assert live.core.ended_by is None
    assert studies.result(second[0], step_report(1, 1.0)) is True
    studies.end(second[0])
    assert str(live.core.ended_by) == str(live.records[1].reason) == "target: trial 00000 reached 1 (target 1e+09)"
