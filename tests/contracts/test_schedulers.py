"""What every scheduler must do, over the registry: a new file in `schedulers/` is tested by existing."""

from __future__ import annotations

import gc
import math
import random
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from schedulers_contract import STEPS, Chance, build, climb, count, study, summary

import schedulers
from tuning.steps import Step
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop

ALL = schedulers.names()
HOOKS = ("on_trial_add", "on_trial_result", "on_trial_complete", "on_trial_remove", "on_trial_error")


def ids(trials: list[LocalTrial]) -> list[int]:
    return sorted(trial.number for trial in trials)


@pytest.mark.parametrize("name", ALL)
def test_every_trial_ends_once_in_full_or_with_a_reason(name: str) -> None:
    searcher = Chance()
    trials = list(study(name, searcher=searcher))
    assert ids(trials) == list(range(count(name)))
    assert len(searcher.told) == count(name)
    for trial in trials:
        assert trial.steps[-1].step <= STEPS
        if trial.state == "finished":
            assert (trial.steps[-1].step, trial.reason) == (STEPS, None)
        else:
            assert trial.state == "stopped"
            assert str(trial.reason).startswith(f"{name}: ")
    positions = [position for trial in trials for position in (trial.suggested, trial.told)]
    assert sorted(positions) == list(range(2 * count(name)))


@pytest.mark.parametrize("name", ALL)
def test_the_studys_clock_holds_every_step_that_was_trained(name: str) -> None:
    """Also those of trials that are paused, and those that were given up for another trial's model."""
    trained, when = 0, {}

    def counted(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        nonlocal trained
        for step in climb(config, number, state):
            trained += 1
            yield replace(step, seconds=1000.0)  # beside them, the searcher's own are nothing

    class Watching(Chance):
        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            when[int(trial_id)] = trained

    trials = list(study(name, counted, searcher=Watching()))
    assert {trial.number: trial.spent_steps for trial in trials} == when
    assert {trial.number: round(trial.spent_seconds / 1000) for trial in trials} == when
    assert max(when.values()) == trained


@pytest.mark.parametrize("name", ["asha", "median", "hyperband", "bohb"])
def test_schedulers_that_stop_trials_save_steps_and_keep_the_best(name: str) -> None:
    trials = list(study(name, n_trials=60))
    assert sum(trial.steps_run for trial in trials) < 0.7 * 60 * STEPS
    best = max(trials, key=lambda trial: trial.config["x"])
    assert best.state == "finished"


@pytest.mark.parametrize("name", ALL)
def test_the_mirror_image_of_a_study_is_decided_alike(name: str) -> None:
    def sunk(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            yield Step(step.step, -step.score, get_state=step.get_state)

    def decided(trials: list[LocalTrial]) -> list[Any]:
        return [(trial.number, trial.config, len(trial.steps), trial.lineage) for trial in trials]

    assert decided(list(study(name))) == decided(list(study(name, sunk, mode="min")))


@pytest.mark.parametrize("name", ALL)
def test_process_wide_random_states_stay_as_they_are(name: str) -> None:
    calls: list[str] = []

    def watched(family: str) -> Any:
        scheduler = build(name, **({"brackets": 2} if name == "asha" else {}))(family)
        for hook in (*HOOKS, "choose_trial_to_run"):
            setattr(scheduler, hook, watch(hook, getattr(scheduler, hook)))
        return scheduler

    def states() -> Any:
        numpy = np.random.get_state(legacy=False)
        return random.getstate(), numpy["state"]["key"].tobytes(), numpy["state"]["pos"], numpy["gauss"]

    def watch(hook: str, method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            before = states()
            calls.append(hook)
            result = method(*arguments)
            assert states() == before, hook
            return result

        return call

    list(study(name, scheduler_for=watched))
    assert {"on_trial_add", "on_trial_result"} <= set(calls)


@pytest.mark.parametrize("name", ALL)
def test_same_seed_same_decisions_whatever_the_process_draws(name: str) -> None:
    random.seed(1)
    np.random.seed(1)
    once = summary(list(study(name)))
    random.seed(2)
    np.random.seed(2)
    assert summary(list(study(name))) == once


@pytest.mark.parametrize("name", ["pbt", "pb2"])
def test_another_seed_varies_otherwise(name: str) -> None:
    once, other = ([trial.schedule for trial in study(name, searcher=Chance(0), seed=seed)] for seed in (1, 2))
    assert any(once)
    assert once != other


@pytest.mark.parametrize("name", ALL)
def test_two_studies_in_turns_take_the_decisions_that_they_take_alone(name: str) -> None:
    """An easy and a hard customer: neither shows in the other's decisions."""

    def hard(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            yield Step(step.step, step.score / 10, get_state=step.get_state)

    def both() -> list[TrialLoop]:
        return [study(name, climb, seed=1), study(name, hard, seed=2)]

    alone = [summary(list(driving)) for driving in both()]
    together: list[list[LocalTrial]] = [[], []]
    drives = both()
    for _ in range(count(name)):
        for trials, driving in zip(together, drives, strict=True):
            trials.append(next(driving))
    assert [summary(trials) for trials in together] == alone


# pb2 is pbt except for what it proposes at step 4, which takes its time.
@pytest.mark.parametrize(("name", "at"), [(name, at) for name in ALL for at in ([4] if name == "pb2" else [1, 4, 9])])
@pytest.mark.parametrize("failing", [[1], [4, 5, 6], [-1], range(1, 20)])
def test_errors_midway_fail_their_trials_only(name: str, failing: Sequence[int], at: int) -> None:
    numbers = range(count(name))
    broken = {numbers[position] for position in failing if position < len(numbers)}

    def breaking(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            if number in broken and step.step == at:
                raise RuntimeError(f"broken at {at}")
            yield step

    searcher = Chance()
    trials = list(study(name, breaking, searcher=searcher))
    assert ids(trials) == list(numbers)
    failed = [trial for trial in trials if trial.state == "failed"]
    assert {trial.number for trial in failed} <= broken
    assert all(str(trial.reason) == f"RuntimeError: broken at {at}" for trial in failed)
    if at == 1:
        assert {trial.number for trial in failed} == broken
    assert all(str(trial.reason).startswith(name) for trial in trials if trial.state == "stopped")
    assert {searcher.told[f"{trial.number:05d}"] for trial in failed} <= {"error"}


@pytest.mark.parametrize("at", [1, 9])
@pytest.mark.parametrize("name", ALL)
def test_a_diverging_trial_is_failed_or_rescued_and_disturbs_nobody(name: str, at: int) -> None:
    def diverging(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            lost = number in (2, 3) and state is None and step.step >= at
            yield Step(step.step, math.nan if lost else step.score, get_state=step.get_state)

    trials = {trial.number: trial for trial in study(name, diverging)}
    assert sorted(trials) == list(range(count(name)))
    for number in (2, 3):
        if trials[number].lineage:
            assert trials[number].state == "finished"
            assert math.isfinite(trials[number].steps[-1].score)
        elif trials[number].state == "failed":
            assert str(trials[number].reason).startswith("the score is nan at step")
        else:
            assert len(trials[number].steps) < at
    assert all(trial.state != "failed" for number, trial in trials.items() if number not in (2, 3))


@pytest.mark.parametrize("n_trials", [1, 2, 3])
@pytest.mark.parametrize("protect", [frozenset(), frozenset({0})])
@pytest.mark.parametrize("name", ALL)
def test_a_study_of_a_few_trials_ends(name: str, protect: frozenset[int], n_trials: int) -> None:
    finished = list(study(name, n_trials=n_trials, protect=protect))
    assert ids(finished) == list(range(n_trials))
    assert any(len(trial.steps) == STEPS for trial in finished)


@pytest.mark.parametrize("name", ALL)
def test_trials_of_one_step_all_finish(name: str) -> None:
    spec = schedulers.parse(name)

    def scheduler_for(family: str) -> Any:
        mutations = schedulers.Mutations((schedulers.Range(("x",), 0, 1),))
        return spec.build(metric="score", mode="max", max_steps=1, seed=0, mutations=mutations)

    def once(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield Step(1, config["x"])

    assert {trial.state for trial in study(name, once, scheduler_for=scheduler_for)} == {"finished"}


@pytest.mark.parametrize("name", ALL)
def test_protected_trials_keep_their_configuration_and_run_to_their_end(name: str) -> None:
    def worst_first(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            yield Step(step.step, -1.0 if number in (0, 5) else step.score, get_state=step.get_state)

    trials = {trial.number: trial for trial in study(name, worst_first, protect=frozenset({0, 5}))}
    for number in (0, 5):
        assert (trials[number].state, len(trials[number].steps)) == ("finished", STEPS)
        assert trials[number].lineage == ()


@pytest.mark.parametrize("name", ALL)
def test_families_are_separate_races(name: str) -> None:
    """The same decisions with a second family in between, whose scores are out of reach."""

    def scored(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):
            yield Step(step.step, step.score + 100 * (config["kind"] == "a"), get_state=step.get_state)

    def family(config: Mapping[str, Any]) -> str:
        return "easy" if config["kind"] == "a" else "hard"

    donors: set[str] = set()
    kinds: dict[int, str] = {}
    trials = list(study(name, scored, family=family))
    for trial in trials:
        kinds[trial.number] = trial.family
    for trial in trials:
        donors |= {kinds[exploit.donor] == trial.family for exploit in trial.lineage}
    assert ids(trials) == list(range(count(name)))
    assert donors <= {True}
    full = {trial.family for trial in trials if len(trial.steps) == STEPS}
    assert full == {"easy", "hard"}


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_a_trial_stays_in_memory(name: str) -> None:
    class Model:
        pass

    models: list[weakref.ref[Model]] = []

    def heavy(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        model = Model()
        models.append(weakref.ref(model))
        done = state[0] if state else 0
        for step in range(done + 1, STEPS + 1):
            yield Step(step, config["x"], get_state=lambda step=step, model=model: (step, model))

    driving = study(name, heavy)
    most = 0
    finished = []
    for trial in driving:
        finished.append(trial)
        most = max(most, sum(model() is not None for model in models))
    gc.collect()
    assert sum(model() is not None for model in models) == 0
    assert most <= 20
    if not schedulers.parse(name).pauses:
        assert most <= 1


@pytest.mark.parametrize("name", ["hyperband", "bohb", "pbt"])
def test_suspended_trials_are_those_of_open_brackets_or_of_the_population(name: str) -> None:
    def most(n_trials: int) -> int:
        alive: set[int] = set()
        seen = 0

        def counted(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
            nonlocal seen
            alive.add(number)
            seen = max(seen, len(alive))
            try:
                yield from climb(config, number, state)
            finally:
                alive.discard(number)

        assert len(list(study(name, counted, n_trials=n_trials))) == n_trials
        return seen

    if name == "pbt":
        assert most(60) == 59  # all but the default train together
    else:
        assert most(300) <= 12  # of one largest bracket, and those that wait for their turn


@pytest.mark.parametrize("name", ALL)
def test_closing_a_study_midway_frees_what_is_suspended(name: str) -> None:
    alive: set[int] = set()

    def counted(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        alive.add(number)
        try:
            yield from climb(config, number, state)
        finally:
            alive.discard(number)

    driving = study(name, counted)
    next(driving)
    driving.close()
    assert alive == set()


@pytest.mark.parametrize("name", ALL)
def test_a_scheduler_can_be_pickled_between_trials(name: str) -> None:
    import cloudpickle

    scheduler = build(name)("")
    again = cloudpickle.loads(cloudpickle.dumps(scheduler))
    assert type(again) is type(scheduler)
    assert summary(list(study(name, scheduler_for=lambda _: again))) == summary(
        list(study(name, scheduler_for=lambda _: scheduler))
    )


@pytest.mark.parametrize("name", ALL)
def test_a_built_scheduler_knows_its_spec(name: str) -> None:
    spec, scheduler = schedulers.parse(name), build(name)("")
    assert (scheduler.name, scheduler.pauses, scheduler.population) == (name, spec.pauses, spec.population)
    assert scheduler.max_steps == STEPS
