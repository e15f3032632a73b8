"""Which studies get helpers, and how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import pytest
from shown_output import codes_of

from search_spaces import Float, SearchSpace
from tuning import TuneRunner
from tuning.notes import PlanCode
from tuning.planning import populations
from tuning.planning.placement import TRIAL_BYTES
from tuning.planning.run_plan import Plan

SPACE = SearchSpace([Float(name, -5, 5, default=4.0) for name in "xy"])


def tuned(config: Mapping[str, float], state: Any) -> Iterator[float]:
    yield 1.0


def plan(**fields: Any) -> Plan:
    own: dict[str, Any] = {"objective": tuned, "search_space": SPACE, "metric": "loss", "mode": "min", "steps": 9}
    base = {"scheduler": "pbt", "algorithm": "random", "trials": 20, "slots": 8, "mlflow": False}
    return TuneRunner(**{**base, **({} if "data" in fields else own), **fields}).plan()


@pytest.mark.parametrize(
    ("fields", "helpers"),
    [
        ({}, 8),
        ({"placement": "spread"}, 8),
        ({"placement": "packed"}, 0),
        ({"slots": 1}, 0),
        ({"trials": 5}, 5),  # more would have nothing to do
        ({"resources": {"cpus": 2}}, 4),
        ({"resources": {"cpus": 5}}, 0),
        ({"scheduler": "asha"}, 0),
        ({"scheduler": "hyperband"}, 8),
        ({"objective": lambda config: 1.0, "scheduler": "hyperband"}, 0),
    ],
)
def test_a_study_has_a_helper_on_each_slot_that_it_can_use(fields: dict[str, Any], helpers: int) -> None:
    found = plan(**fields)
    assert found.helpers == helpers
    assert found.to_dict()["helpers"] == helpers
    assert (f"each with {helpers} helpers," in found.describe()) == (helpers > 0)


@pytest.mark.parametrize(("studies", "helpers"), [(1, 8), (3, 2), (4, 2), (5, 0), (9, 0)])
def test_studies_share_the_slots(studies: int, helpers: int) -> None:
    rows = pd.DataFrame({"a": range(20), "y": range(20)})
    data = {f"c{number}": rows for number in range(studies)}
    found = plan(search_space="xgboost", data=data, target="y")
    assert (found.placement, found.helpers) == ("packed", helpers)


def test_there_are_no_more_helpers_than_the_rows_of_a_study_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({"a": range(1000), "y": range(1000)})
    fields = {"search_space": "xgboost", "data": {"acme": rows}, "target": "y"}
    size = int(plan(**fields).studies[0].customer.size)
    for fit, helpers in ((20, 8), (5, 4), (2, 0)):
        monkeypatch.setattr(populations, "slot_bytes", lambda slots, fit=fit: 1.01 * fit * TRIAL_BYTES * size / slots)
        assert plan(**fields).helpers == helpers


def test_an_objective_that_cannot_go_on_from_a_state_is_said_to_be_why() -> None:
    found = plan(objective=lambda config: 1.0, scheduler="hyperband")
    assert codes_of(found)[0] is PlanCode.SLOTS_IDLE
    assert "is one process without a parameter `state`: " in str(found.notes[0])


@pytest.mark.parametrize(("machines", "helpers"), [([8], 8), ([3, 3], 6), ([5], 5), ([1], 0), ([16, 16], 8), ([], 8)])
def test_a_smaller_cluster_has_fewer_helpers_and_nobody_waits(machines: list[int], helpers: int) -> None:
    there = [{"CPU": float(cpus)} for cpus in machines]
    for made, expected in ((plan(), helpers), (plan(placement="packed"), 0)):
        assert populations.helpers_with_room(made.helpers, made.resources, there) == expected
