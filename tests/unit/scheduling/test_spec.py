"""Specs: found, parsed, validated, refused with a message that names the way out; and light to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import schedulers
from search_spaces import algorithms


@pytest.mark.parametrize("name", schedulers.names())
def test_a_spec_is_a_frozen_value_that_survives_the_way_through_a_mapping(name: str) -> None:
    spec = schedulers.parse(name)
    assert spec.name == name
    assert schedulers.parse(spec.to_dict()) == spec
    assert schedulers.parse(spec) is spec
    assert hash(spec) == hash(schedulers.parse(name))


def test_unknown_name_names_the_nearest() -> None:
    with pytest.raises(
        schedulers.SchedulerError,
        match=r"unknown scheduler 'ahsa'; did you mean 'asha'\? valid: asha, bohb, fifo, hyperband, median, pb2, pbt",
    ):
        schedulers.parse("ahsa")


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(schedulers.SchedulerError, match=r"unknown option 'reduction'.*'reduction_factor'"):
        schedulers.parse({"name": "asha", "reduction": 4})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "asha", "reduction_factor": 1}, "reduction_factor = 1: must be at least 1.1"),
        ({"name": "asha", "grace_period": 0}, "grace_period = 0.*at least 1"),
        ({"name": "asha", "grace_period": "soon"}, "grace_period = 'soon'"),
        ({"name": "asha", "reduction_factor": float("nan")}, "reduction_factor"),
        ({"reduction_factor": 3}, "give a name"),
        (3, "give a name"),
    ],
)
def test_bad_values_are_refused_with_value_and_rule(value: object, message: str) -> None:
    with pytest.raises(schedulers.SchedulerError, match=message):
        schedulers.parse(value)


def test_a_wrong_pair_is_refused_with_the_reason_and_the_way_out() -> None:
    asha, pbt, able = schedulers.parse("asha"), schedulers.parse("pbt"), algorithms.unlearning()
    assert schedulers.check(asha, "optuna", able) is None
    assert schedulers.check(pbt, "random", able) is None
    assert schedulers.check(pbt, "optuna", able) == (
        "scheduler pbt cannot be used with algorithm optuna: it changes configurations during training, so that "
        f"scores teach an algorithm nothing; use algorithm {' or '.join(able)}, or another scheduler"
    )


def test_importing_and_parsing_does_not_import_ray() -> None:
    code = "import sys, schedulers as s; [s.parse(n) for n in s.names()]; print('ray' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
