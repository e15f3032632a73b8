"""Stopping rules: each ends what it should, says why, and leaves protected trials alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from mlflow_records import trial as trial_of
from paths import ROOT
from schedulers_contract import STEPS, Chance, climb, study

import schedulers
from schedulers import stopping
from tuning.steps import Step
from tuning.study.trial import TrialShape


def rules(**options: Any) -> list[Any]:
    return [rule.build(metric="score", mode="max") for rule in stopping.parse(options)]


def test_rules_are_found_and_parsed_in_short_and_in_full() -> None:
    assert stopping.names() == ["study_plateau", "study_time", "target", "trial_plateau"]
    short = stopping.parse({"target": 0.9, "study_plateau": 5, "study_time": 60, "trial_plateau": 3})
    full = stopping.parse({rule.name: rule.to_dict() for rule in short})
    assert short == full
    assert stopping.parse(None) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"traget": 1}, "unknown stopping rule 'traget'; did you mean 'target'"),
        ({"target": {"scores": 1}}, "target: unknown option 'scores'; did you mean 'score'"),
        ({"target": "high"}, "target: score = 'high'"),
        ({"study_time": 0}, "seconds = 0: must be above 0"),
        ({"study_plateau": {"min_delta": 1}}, "trials = .*Field required"),
        (["target"], "give a mapping of name: options"),
    ],
)
def test_bad_rules_are_refused_with_value_and_way_out(value: Any, message: str) -> None:
    with pytest.raises(schedulers.SchedulerError, match=message):
        stopping.parse(value)


@pytest.mark.parametrize("name", schedulers.names())
def test_a_reached_target_ends_the_study(name: str) -> None:
    driving = study(name, rules=rules(target=0.5))
    trials = list(driving)
    good = [trial for trial in trials if trial.state == "finished" and (trial.score or 0) >= 0.5]
    assert good
    assert str(driving.core.closed_by).startswith("target: trial 000")
    first = min(trial.told for trial in good)
    for trial in trials:
        if trial.told > first:
            assert trial.state == "finished" or trial.reason in (driving.core.closed_by, trial.reason)
            assert trial.suggested < first or name == "fifo"


def test_after_the_target_no_trial_is_proposed() -> None:
    driving = study("fifo", rules=rules(target=0.5), n_trials=50)
    trials = list(driving)
    assert [trial.score >= 0.5 for trial in trials if trial.score is not None] == [False] * (len(trials) - 1) + [True]


def test_a_stopped_trial_does_not_reach_the_target() -> None:
    def falling(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield from (Step(step, 1.0 / step - number) for step in range(1, STEPS + 1))

    driving = study("asha", falling, rules=rules(target=-1.5), protect=frozenset({0}), n_trials=5)
    trials = list(driving)
    assert [trial.state for trial in trials] == ["finished"]
    driving = study("asha", falling, rules=rules(target=0.5), n_trials=5)
    assert [trial.state for trial in driving] == ["finished"] + ["stopped"] * 4


@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_study_without_progress_ends(mode: str) -> None:
    scores = iter([5.0, 6.0, 6.4, 1.0, 2.0, 6.4, 9.0, 9.0])
    sign = 1.0 if mode == "max" else -1.0

    def listed(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield Step(1, sign * next(scores))

    built = [
        rule.build(metric="score", mode=mode)
        for rule in stopping.parse({"study_plateau": {"trials": 3, "min_delta": 0.5}})
    ]
    driving = study("fifo", listed, mode=mode, rules=built)
    assert len(list(driving)) == 5
    assert str(driving.core.closed_by) == f"study_plateau: nothing better than {sign * 6.0:.6g} in the last 3 trials"


class Clock:
    """Seconds that pass only when training says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def ticking(self, config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            self.now += 1.0
            yield step


def time_rule(seconds: float, clock: Clock) -> Any:
    return stopping.parse({"study_time": seconds})[0].build(metric="score", mode="max", clock=clock)


@pytest.mark.parametrize("name", schedulers.names())
def test_a_study_out_of_time_ends_at_the_next_step(name: str) -> None:
    clock = Clock()
    driving = study(name, clock.ticking, rules=[time_rule(20.5, clock)])
    trials = list(driving)
    assert clock.now == 121.0
    assert sum(trial.steps_run for trial in trials) == 21
    reason = "study_time: the budget of 20.5 s is spent"
    assert str(driving.core.closed_by) == reason
    assert trials[0].state == "finished"
    assert trials[-1].state == "finished" or reason in {str(trial.reason) for trial in trials}


def test_a_protected_trial_has_its_full_budget_whatever_the_time() -> None:
    clock = Clock()
    trials = list(study("fifo", clock.ticking, rules=[time_rule(2, clock)]))
    assert [(trial.number, trial.state, len(trial.steps)) for trial in trials] == [(0, "finished", STEPS)]


def test_the_time_of_an_earlier_attempt_counts() -> None:
    clock = Clock()
    earlier = [
        trial_of(number=trial.number, config=dict(trial.config), steps=trial.steps, state=trial.state, seconds=9.0)
        for trial in study("fifo", n_trials=2)
    ]
    trials = list(study("fifo", clock.ticking, rules=[time_rule(22.5, clock)], replay=earlier))
    assert [(trial.number, len(trial.steps)) for trial in trials] == [(2, 5)]


def test_a_trial_on_its_plateau_is_finished_with_its_best_step() -> None:
    def flat(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield from (Step(n, score) for n, score in enumerate([0.1, 0.5, 0.4, 0.5, 0.3, 0.9], 1))

    def trials(best_prefix: bool) -> list[Any]:
        shape = TrialShape(best_prefix=best_prefix, progress=best_prefix)
        built = rules(trial_plateau=3)
        return list(study("fifo", flat, rules=built, n_trials=2, shape=lambda _: shape))

    protected, ended = trials(best_prefix=True)
    assert len(protected.steps) == 6
    assert (ended.state, ended.score, len(ended.steps)) == ("finished", 0.5, 5)
    assert str(ended.reason) == "trial_plateau: nothing better than 0.5 since step 2"
    assert [len(trial.steps) for trial in trials(best_prefix=False)] == [6, 6]


def test_a_built_rule_stops_nothing_by_itself_and_needs_no_ray() -> None:
    code = "import sys, schedulers.stopping as s\n"
    code += "rules = s.parse({'target': 0.9, 'study_plateau': 5, 'study_time': 60, 'trial_plateau': 3})\n"
    code += "assert not any(rule.build(metric='auc', mode='max').stop_all() for rule in rules)\n"
    code += "assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_rules_know_only_their_own_study() -> None:
    easy = study("fifo", rules=rules(target=0.0), searcher=Chance(1))
    hard = study("fifo", rules=rules(target=2.0), searcher=Chance(1))
    assert (len(list(easy)), len(list(hard))) == (1, 20)
