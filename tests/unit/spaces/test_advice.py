"""Advice can be typed as it is printed: what a refusal says to write is accepted, in Python and in YAML."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError
from search_spaces.yaml_text import parse_yaml

#: (kind, arguments, what is advised for which argument): all that the sentence names is tried.
NUMBERS: list[tuple[type[Float] | type[Int], dict[str, Any], str]] = [
    (Float, {"low": 0, "high": 1, "step": 0.3}, "high"),
    (Float, {"low": 0, "high": 1, "step": 3}, "high"),
    (Float, {"low": -math.pi / 4, "high": 10, "step": math.pi / 2}, "high"),
    (Float, {"low": 0.1, "high": 1e6, "step": 0.7}, "high"),
    (Float, {"low": 1e-7, "high": 3e-7, "step": 1.1e-7}, "high"),
    (Float, {"low": -1.7e308, "high": 0.0, "step": 1e308}, "high"),
    (Int, {"low": 1, "high": 8, "step": 3}, "high"),
    (Int, {"low": 0, "high": 10**15, "step": 7}, "high"),
    (Int, {"low": 0, "high": 100, "log": True}, "low"),
    (Int, {"low": -3, "high": 1, "log": True}, "low"),
    (Float, {"low": 0, "high": 1, "log": True}, "low"),
    (Float, {"low": -1, "high": 1e-12, "log": True}, "low"),
    (Float, {"low": 0, "high": 1, "step": 0.5, "default": 0.3}, "default"),
    (Float, {"low": 0, "high": 1, "step": 1 / 3, "default": 0.9}, "default"),
    (Int, {"low": 4, "high": 64, "step": 4, "default": 5}, "default"),
]


@pytest.mark.parametrize("case", NUMBERS, ids=str)
def test_an_advised_number_is_accepted(case: tuple[type[Float] | type[Int], dict[str, Any], str]) -> None:
    kind, fields, argument = case
    with pytest.raises(SpaceError) as caught:
        kind("x", **fields)
    advice = str(caught.value).partition("; ")[2]
    found = re.findall(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?(?![\w.])", advice)
    found = [each for each in found if each != "0" or argument != "low"]  # "low > 0" is the rule
    assert found
    for text in found:
        for value in (ast.literal_eval(text), yaml.safe_load(text)):
            assert kind("x", **{**fields, argument: value}).contains(float(text))


STEPS = [
    (-math.pi / 4, 15 * math.pi / 4, math.pi / 2, 9),
    (0, 1, 1 / 3, 4),
    (0, 0.1 * 3, 0.1, 4),
    (0, 2 * math.pi, math.pi / 6, 13),
    (0, 1, 0.1, 11),
    (-1, 1, 2 / 7, 8),
    (1e6, 1e6 + 1, 0.1, 11),
    (math.e, 101 * math.e, math.e, 101),
    (1e-9, 10e-9, 1e-9, 10),
    (0.7, 0.7 + 0.1 + 0.2, 0.1, 4),
]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_that_miss_the_end_by_rounding_reach_it(step: tuple[float, float, float, int]) -> None:
    low, high, each, size = step
    parameter = Float("x", low, high, step=each)
    values = [parameter.value(index) for index in range(parameter.size or 0)]
    assert len(values) == size
    assert (values[0], values[-1], parameter.at(1.0)) == (low, high, high)
    assert all(parameter.contains(value) and parameter.nearest(value) == value for value in values)
    assert [parameter.index(value) for value in values] == list(range(size))
    assert SearchSpace.from_dict(SearchSpace([parameter]).to_dict()).parameters == (parameter,)


@pytest.mark.parametrize("step", [0.3, 0.33, 0.3333, 0.333333, 0.7, 1.5])
def test_steps_that_miss_the_end_are_refused(step: float) -> None:
    with pytest.raises(SpaceError, match=r"miss high 1\.0"):
        Float("x", 0, 1, step=step)


def quoted(text: str) -> str:
    return ast.literal_eval(re.findall(r"write ('[^']*')", text)[-1])  # type: ignore[no-any-return]  # a text of the advice


NAMES = ["a.b", "a/b c", "1.5", "2x", "-x", "a b", "x!", "ä.ö", ".", "/", "x\n"]


@pytest.mark.parametrize("name", NAMES)
def test_an_advised_name_is_accepted(name: str) -> None:
    with pytest.raises(SpaceError) as caught:
        Constant(name, 1)
    assert Constant(quoted(str(caught.value)), 1)


@pytest.mark.parametrize("pair", [[0, 1], [5, 1], (0.1, 0.5), [2, 2], [-1, 1e9]], ids=str)
def test_a_pair_is_advised_to_be_a_range_or_a_constant(pair: Any) -> None:
    from ray import tune

    with pytest.raises(SpaceError) as caught:
        SearchSpace.from_ray_tune({"x": pair})
    calls = re.findall(r"tune\.\w+\([^)]*\)", str(caught.value))
    assert [len(SearchSpace.from_ray_tune({"x": eval(call, {"tune": tune})}).parameters) for call in calls] == [1, 1]
    forms = re.findall(r"\{.*?\}", str(caught.value))
    assert [len(SearchSpace.from_dict({"parameters": {"x": parse_yaml(form)}}).parameters) for form in forms] == [1, 1]


VALUES: list[tuple[Any, str]] = [
    ("sqrt", "sqrt"), ("1", '"1"'), (1, "1"), (1.0, "1.0"), (None, "null"), ("null", '"null"'), ("None", "None"),
    (True, "true"), ("no", '"no"'), ("a b", '"a b"'), ("1e-4", '"1e-4"'), ("größer", "größer"), ("", '""'),
    ([1, 1.0], "[1, 1.0]"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), VALUES, ids=str)
def test_a_value_is_described_as_yaml_reads_it(value: Any, text: str) -> None:
    assert Choice("x", [value]).describe() == f"one of {text}, default {text}"
    read: Callable[[str], Any] = yaml.safe_load
    assert repr(read(text)) == repr(value)
