"""The compatibility table: every pair of scheduler and algorithm is tried, and the page shows what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

import schedulers
from schedulers.compatibility import option_table, rule_table, scheduler_table
from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError, algorithms
from tuning.definition.definition import define
from tuning.errors import PlanError
from tuning.planning.plan import make_plan
from tuning.steps import Step
from tuning.study.core import StudyCore
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process
from tuning.study.mutations import mutations

PAGE = ROOT / "docs" / "schedulers.md"
SPACE = SearchSpace([Float("x", 0.0, 1.0), Int("n", 1, 8), Choice("kind", ["a", "b"])])
STEPS = 9


def train(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
    done, weight = state or (0, 0.0)
    for step in range(done + 1, STEPS + 1):
        weight += (1 - weight) * 0.3 * config["x"]
        yield Step(step, weight, get_state=lambda now=(step, weight): now)


@pytest.mark.parametrize("algorithm", algorithms.names())
@pytest.mark.parametrize("scheduler", schedulers.names())
def test_a_pair_is_refused_or_searches(scheduler: str, algorithm: str) -> None:
    spec, chosen = schedulers.parse(scheduler), algorithms.parse(algorithm)
    refusal = schedulers.check(spec, algorithm, algorithms.unlearning())
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{scheduler}` |"))
    allowed = row.split("|")[5].strip()
    able = algorithms.unlearning() if allowed == "those that learn from nothing" else allowed.split(", ")
    assert (refusal is None) == (allowed == "all" or algorithm in able)
    if refusal is not None:
        assert refusal.startswith(f"scheduler {scheduler} cannot be used with algorithm {algorithm}: {spec.why}; use ")
        return
    n_trials = {"ax": 8, "hebo": 8, "bayesopt": 12}.get(algorithm, 14)  # of those that fit a model: so many reach it
    if scheduler == "pb2":  # a proposal takes some tenths of a second: one of them
        spec, n_trials = schedulers.parse({"name": "pb2", "perturbation_interval": 4, "quantile_fraction": 0.1}), 5
    try:
        searcher = chosen.build(SPACE, metric="score", mode="max", seed=0, n_trials=n_trials, points=[SPACE.default()])
    except SpaceError as error:
        if not set(chosen.requires) - {"optuna", "hyperopt"}:
            raise
        pytest.skip(str(error))  # an optional library that is not here: `make fresh` runs those
    found = mutations(SPACE, SPACE.default(), (), "model")

    def scheduler_for(config: Any) -> Any:
        return spec.build(metric="score", mode="max", max_steps=STEPS, seed=0, mutations=found)

    core = StudyCore(searcher, scheduler_for, LocalTrial, n_trials=n_trials, metric="score", mode="max")
    finished = list(TrialLoop(core, in_process(train), pauses=True))
    assert sorted(trial.number for trial in finished) == list(range(n_trials))
    assert finished[0].state == "finished"
    assert dict(finished[0].config) == SPACE.default()
    for trial in finished:
        SPACE.check(trial.config)
        assert trial.state == "finished" or str(trial.reason).startswith(f"{scheduler}: ")


@pytest.mark.parametrize("placement", ["packed", "spread"])
@pytest.mark.parametrize("name", schedulers.names())
def test_every_scheduler_has_both_placements(name: str, placement: str) -> None:
    def objective(config: Any, state: Any) -> float:
        return 0.0

    fields = {"objective": objective, "search_space": SPACE, "metric": "loss", "mode": "min", "steps": STEPS}
    fields |= {"scheduler": name, "algorithm": "bohb" if name == "bohb" else "random", "slots": 4}
    plan = make_plan(define({**fields, "placement": placement}))
    if schedulers.parse(name).pauses:
        assert (plan.placement, plan.helpers) == ("packed", 4 if placement == "spread" else 0)
    else:
        assert (plan.placement, plan.helpers) == (placement, 0)


@pytest.mark.parametrize("name", [name for name in schedulers.names() if schedulers.parse(name).needs_state])
def test_an_objective_that_cannot_go_on_from_a_state_is_refused_where_one_is_needed(name: str) -> None:
    fields = {
        "objective": lambda config: 0.0,
        "search_space": SPACE,
        "metric": "loss",
        "mode": "min",
        "algorithm": "random",
    }
    with pytest.raises(PlanError, match=f"scheduler '{name}' .* it has no parameter `state`"):
        make_plan(define({**fields, "scheduler": name}))


@pytest.mark.parametrize("name", [name for name in schedulers.names() if schedulers.parse(name).mutates])
@pytest.mark.parametrize("search_space", ["ridge", SearchSpace([Constant("c", 1)])])
def test_a_search_space_in_which_nothing_can_change_is_refused(name: str, search_space: Any, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,y\n" + "1,2\n3,4\n" * 10)
    what: dict[str, Any] = {"data": str(tmp_path / "c.csv"), "target": "y", "task": "regression"}
    if search_space != "ridge":
        what = {"objective": lambda config, state: 0.0, "metric": "loss", "mode": "min"}
    definition = define({**what, "search_space": search_space, "scheduler": name, "algorithm": "random"})
    with pytest.raises(PlanError, match=f"scheduler '{name}' changes a .* this search space has none"):
        make_plan(definition)


@pytest.mark.parametrize(
    ("place", "table"), [("schedulers", scheduler_table), ("options", option_table), ("rules", rule_table)]
)
def test_the_page_shows_the_tables(place: str, table: Any) -> None:
    shown = PAGE.read_text().split(f"<!-- {place} -->")[1].split(f"<!-- /{place} -->")[0].strip()
    assert shown == table(), "python -m schedulers.compatibility prints what belongs there"
