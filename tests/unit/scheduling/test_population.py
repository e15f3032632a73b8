"""Population based training: exploits, lineage, bounds, rescue; and nothing that waits for ever."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from schedulers_contract import MUTATIONS, STEPS, Chance, climb, study

import schedulers
from tuning.errors import StudyError
from tuning.steps import Step
from tuning.study.local_trial import LocalTrial

POPULATION = ["pbt", "pb2"]


def refit(trial: LocalTrial) -> float:
    """The model again, from its schedule of hyperparameters alone."""
    state, score = None, math.nan
    schedule = trial.schedule or ((0, trial.config),)
    ends = [step for step, _ in schedule[1:]] + [STEPS]
    for (_, config), end in zip(schedule, ends, strict=True):
        for step in climb(config, 0, state):
            if step.step > end:
                break
            assert step.get_state is not None
            state, score = step.get_state(), step.score
    return score


@pytest.mark.parametrize("synch", [True, False])
@pytest.mark.parametrize("name", POPULATION)
def test_a_model_can_be_refitted_from_its_schedule(name: str, synch: bool) -> None:
    trials = list(study(name, options={"synch": synch}))
    taken_over = [trial for trial in trials if trial.lineage]
    assert taken_over or not synch
    for trial in trials:
        assert [step.step for step in trial.steps] == list(range(1, STEPS + 1))
        assert refit(trial) == pytest.approx(trial.steps[-1].score, abs=1e-12)
        assert dict(trial.schedule[-1][1] if trial.schedule else trial.config) == dict(trial.config)
    for trial in taken_over:
        assert [step for step, _ in trial.schedule] == [0, *(exploit.step for exploit in trial.lineage)]


def test_right_after_an_exploit_the_model_is_the_donors() -> None:
    weights: dict[tuple[int, int], float] = {}
    inherited: list[tuple[int, int, float]] = []

    def noting(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        if state is not None:
            inherited.append((number, *state))
        for step in climb(config, number, state):
            weights[number, step.step] = step.score
            yield step

    list(study("pbt", noting))
    assert inherited
    for number, step, weight in inherited:
        at_that_step = {donor: score for (donor, when), score in weights.items() if when == step}
        assert weight in [score for donor, score in at_that_step.items() if donor != number]
        assert weight >= sorted(at_that_step.values())[len(at_that_step) // 2]


def test_the_whole_population_is_pulled_towards_the_best() -> None:
    alone = [trial.steps[-1].score for trial in study("fifo")][1:]
    together = [trial.steps[-1].score for trial in study("pbt")][1:]
    assert min(together) > min(alone)
    assert sum(together) > sum(alone)


@pytest.mark.parametrize("name", POPULATION)
def test_every_configuration_of_a_schedule_is_inside_the_ranges(name: str) -> None:
    seen = 0
    for trial in study(name, options={"perturbation_interval": 4} if name == "pb2" else {"perturbation_interval": 1}):
        for _, config in trial.schedule:
            seen += 1
            assert 0.0 <= config["x"] <= 1.0
            assert config["n"] in (1, 2, 3, 4)
            assert isinstance(config["n"], int)
            assert config["kind"] in ("a", "b", "c")
    assert seen > 0


def test_perturbations_stay_inside_and_get_everywhere() -> None:
    rng = random.Random(0)
    spaces = [
        schedulers.Range(("v",), 0.0, 1.0),
        schedulers.Range(("v",), 1e-5, 1.0, log=True),
        schedulers.Range(("v",), -2.0, 2.0),
        schedulers.Range(("v",), 0.0, 1.0, step=0.25),
        schedulers.Range(("v",), 1, 12, whole=True),
        schedulers.Range(("v",), 1, 1000, log=True, whole=True),
        schedulers.Range(("v",), 10, 50, step=20, whole=True),
        schedulers.Choices(("v",), (1, 10, 100)),
        schedulers.Choices(("v",), ("relu", "tanh")),
        schedulers.Choices(("v",), (True, False)),
    ]
    for space in spaces:
        config = {"v": space.sample(rng), "other": "stays"}
        values = []
        for _ in range(400):
            config = schedulers.Mutations((space,)).vary(config, 0.25, (1.2, 0.8), rng)
            values.append(config["v"])
        assert config["other"] == "stays"
        if isinstance(space, schedulers.Choices):
            assert set(values) == set(space.values)
            continue
        assert all(space.low <= value <= space.high for value in values)
        assert all(isinstance(value, int) == space.whole for value in values)
        if space.step:
            assert all(((value - space.low) / space.step).is_integer() for value in values)
        assert len(set(values)) >= 3
        assert max(values) > (space.low + space.high) / 2 > min(values)


def test_a_small_whole_number_moves_without_resampling() -> None:
    numbers = schedulers.Range(("n",), 1, 8, whole=True)
    rng = random.Random(0)
    assert numbers.perturb(1, 1.2, rng) == 2
    assert numbers.perturb(2, 0.8, rng) == 1
    assert numbers.perturb(1, 0.8, rng) == 1
    assert numbers.perturb(8, 1.2, rng) == 8


def test_a_parameter_that_a_configuration_does_not_have_is_not_added() -> None:
    deep = schedulers.Range(("svm", "gamma"), 0.0, 1.0)
    other = schedulers.Range(("alpha",), 5.0, 9.0, when={"model": ("lasso",)})
    config = {"model": "ridge", "alpha": 1.0, "ridge": {"alpha": 1.0}}
    assert schedulers.Mutations((deep, other)).vary(config, 1.0, (1.2, 0.8), random.Random(0)) == config


def test_what_the_search_space_forbids_is_not_proposed() -> None:
    x, y = (schedulers.Range((name,), 0.0, 1.0) for name in "xy")
    mutations = schedulers.Mutations((x, y), allows=lambda config: config["x"] + config["y"] <= 1.0)
    rng, config = random.Random(0), {"x": 0.5, "y": 0.5}
    seen = []
    for _ in range(100):
        config = mutations.vary(config, 0.25, (1.2, 0.8), rng)
        seen.append(config["x"])
        assert config["x"] + config["y"] <= 1.0
    assert len(set(seen)) > 20
    never = schedulers.Mutations((x,), allows=lambda _: False)
    assert never.vary({"x": 0.5}, 0.25, (1.2, 0.8), rng) == {"x": 0.5}


@pytest.mark.parametrize("burn_in_period", [0, 2, 3, 5, 20])
@pytest.mark.parametrize("interval", [1, 2, 4, 20])
@pytest.mark.parametrize("synch", [True, False])
def test_no_setting_of_pbt_waits_for_ever(synch: bool, interval: int, burn_in_period: int) -> None:
    options = {"synch": synch, "perturbation_interval": interval, "burn_in_period": burn_in_period}
    trials = list(study("pbt", options=options, n_trials=8))
    assert [trial.state for trial in trials] == ["finished"] * 8
    if interval < STEPS and burn_in_period < STEPS and synch:
        assert any(trial.lineage for trial in trials)


def test_training_without_state_is_refused_by_name_when_it_is_needed() -> None:
    def stateless(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield from (Step(step.step, step.score) for step in climb(config, number, state))

    with pytest.raises(StudyError, match=r"family 'trees' gives no `Step.get_state`.*docs/schedulers.md"):
        list(study("pbt", stateless, family=lambda _: "trees"))


def test_a_state_that_cannot_be_read_is_the_training_codes_fault() -> None:
    def broken(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield from (Step(step.step, step.score, get_state=lambda: 1 / 0) for step in climb(config, number, state))

    with pytest.raises(StudyError, match=r"`Step.get_state` of trial \d+ failed at step 1: ZeroDivisionError"):
        list(study("pbt", broken))


def test_only_states_that_are_taken_over_are_read() -> None:
    reads = 0

    def counting(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        for step in climb(config, number, state):

            def get_state(state: Any = step.get_state) -> Any:
                nonlocal reads
                reads += 1
                return state()

            yield Step(step.step, step.score, get_state=get_state)

    exploits = {(trial.number, exploit) for trial in study("pbt", counting) for exploit in trial.lineage}
    assert reads >= len(exploits) > 0
    assert reads <= 8 * math.ceil(19 / 4)  # rounds × the worst quarter


def test_pbt_without_anything_to_change_is_refused() -> None:
    spec = schedulers.parse("pbt")
    with pytest.raises(schedulers.SchedulerError, match="no hyperparameter of this search space can change"):
        spec.build(metric="score", mode="max", max_steps=9, seed=0)
    with pytest.raises(schedulers.SchedulerError, match="no numeric hyperparameter"):
        schedulers.parse("pb2").build(
            metric="score", mode="max", max_steps=9, seed=0, mutations=schedulers.Mutations(MUTATIONS.parameters[-1:])
        )


def test_pb2_refuses_configurations_that_lack_what_it_changes() -> None:
    class Sparse(Chance):
        def suggest(self, trial_id: str) -> dict[str, Any]:
            return {"kind": "a"}

    with pytest.raises(StudyError, match=r"trial 00001 has no hyperparameter x; .* use pbt"):
        list(study("pb2", searcher=Sparse()))


def test_rays_own_pbt_is_driven_too() -> None:
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining

    random.seed(0)

    def rays(family: str) -> Any:
        return PopulationBasedTraining(
            time_attr="training_iteration",
            metric="score",
            mode="max",
            perturbation_interval=2,
            hyperparam_mutations={"x": tune.uniform(0, 1)},
            log_config=False,
            synch=True,
        )

    trials = list(study("pbt", scheduler_for=rays))
    assert {trial.state for trial in trials} == {"finished"}
    assert any(trial.lineage for trial in trials)
    assert all(refit(trial) == pytest.approx(trial.steps[-1].score, abs=1e-12) for trial in trials)


@pytest.mark.parametrize("kind", ["FIFOScheduler", "ASHAScheduler", "MedianStoppingRule", "HyperBandScheduler"])
def test_rays_own_schedulers_are_driven_too(kind: str) -> None:
    import ray.tune.schedulers

    options = {
        "FIFOScheduler": {},
        "ASHAScheduler": {"max_t": STEPS, "reduction_factor": 3},
        "MedianStoppingRule": {"time_attr": "training_iteration", "grace_period": 1},
        "HyperBandScheduler": {"max_t": STEPS},
    }[kind]
    if kind != "FIFOScheduler":
        options = {**options, "metric": "score", "mode": "max"}
    trials = list(study("fifo", scheduler_for=lambda _: getattr(ray.tune.schedulers, kind)(**options), n_trials=40))
    assert sorted(trial.number for trial in trials) == list(range(40))
    stopped = [trial for trial in trials if trial.state == "stopped"]
    assert bool(stopped) == (kind != "FIFOScheduler")
    assert all(
        str(trial.reason) == f"{kind.replace('ASHA', 'AsyncHyperBand')} stopped it after step {len(trial.steps)}"
        or "paused it" in str(trial.reason)
        for trial in stopped
    )
