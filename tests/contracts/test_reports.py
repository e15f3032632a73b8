"""What an objective may report: every kind of real number, and steps whose numbers rise; else a failed trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tuning.errors import DefinitionError
from tuning.evaluation.objective import steps_of
from tuning.steps import Step


class Tensor:
    """As a loss of PyTorch or JAX comes, on whatever device."""

    ndim = 0

    def item(self) -> float:
        return 0.5


NUMBERS = {
    "int": 2, "float": 0.5, "bool": True, "negative": -1e300, "fraction": Fraction(1, 2), "decimal": Decimal("0.5"),
    "float16": np.float16(0.5), "float32": np.float32(0.5), "longdouble": np.longdouble("0.5"), "int64": np.int64(2),
    "uint8": np.uint8(2), "bool_": np.bool_(True), "array": np.array(0.5), "array of int": np.array(2),
    "array of bool": np.array(True), "tensor": Tensor(), "NaN": math.nan, "NaN of NumPy": np.float32("nan"),
    "infinite": -math.inf,
}  # fmt: skip
OTHERS = {
    "None": None, "text": "0.5", "bytes": b"1", "complex": 1 + 0j, "complex of NumPy": np.complex64(1),
    "list": [0.5], "tuple": (0.5, "model"), "array of one": np.array([0.5]), "array of two": np.array([1, 2]),
    "series": pd.Series([0.5]), "NA": pd.NA, "NaT": pd.NaT, "time": np.datetime64("2020-01-01"), "object": object(),
    "text in an array": np.array("a"), "function": abs, "set": {1},
}  # fmt: skip


def reported(value: Any, steps: float = 5) -> list[Step]:
    """The steps of a trial that reports a value, or the values that a function makes."""

    def objective(config: dict[str, Any]) -> Any:
        return value() if callable(value) and value is not abs else value

    return list(steps_of(objective, {"x": 1}, "loss", 0, steps=steps))


FORMS: dict[str, Callable[[Any], Any]] = {
    "bare": lambda value: value,
    "in a dict": lambda value: {"loss": value, "note": "text"},
    "in a step": lambda value: lambda: (Step(number, value) for number in (1, np.int64(2))),
    "at each step": lambda value: lambda: (value for _ in range(3)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_a_score_whatever_its_type(name: str, form: str) -> None:
    steps = reported(FORMS[form](NUMBERS[name]))
    expected = 0.5 if name == "tensor" else float(NUMBERS[name])
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        assert type(step.score) is float
        assert type(step.step) is int
        assert step.score == expected or (math.isnan(step.score) and math.isnan(expected))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_number_fails_the_trial_by_its_name(name: str, form: str) -> None:
    with pytest.raises(DefinitionError, match=r"^objective: reported "):
        reported(FORMS[form](OTHERS[name]))


def test_further_figures_are_numbers_of_any_type_and_others_are_left_out() -> None:
    (step,) = reported({"loss": 1, **NUMBERS, **OTHERS})
    assert step.metrics.keys() == NUMBERS.keys()
    assert set(map(type, step.metrics.values())) == {float}


@pytest.mark.parametrize("numbers", [[1], [1, 2, 3], [1, 10, 20], [7], [np.int64(2), np.int32(5)]])
def test_steps_may_leave_numbers_out(numbers: list[int]) -> None:
    assert [step.step for step in reported(lambda: (Step(number, 0.5) for number in numbers), 20)] == numbers


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1, 1], "reported step 1 after step 1; each step has a larger number"),
        ([3, 2, 1], "reported step 2 after step 3"),
        ([1, 5, 5], "reported step 5 after step 5"),
        ([0], "reported step 0 with the score 0.5; a whole number from 1"),
        ([-1], "reported step -1"),
        ([1, 2.0], "reported step 2.0"),
        (["1"], "reported step '1'"),
        ([None], "reported step None"),
        ([1, 2**40], "reported step 1099511627776"),
    ],
)
def test_steps_whose_numbers_do_not_rise_fail_the_trial(numbers: list[Any], said: str) -> None:
    seen: list[int] = []

    def run() -> Iterator[Step]:
        for number in numbers:
            yield Step(number, 0.5)

    with pytest.raises(DefinitionError, match=f"^objective: {said}"):
        seen.extend(step.step for step in steps_of(lambda config: run(), {"x": 1}, "loss", 0, steps=20))
