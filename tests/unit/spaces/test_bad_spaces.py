"""Mistakes in a search space: each gets the path of the field, the value and the way out, never a traceback of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray import tune

from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError, algorithms, presets
from search_spaces.yaml_text import dump_yaml, parse_yaml, read_yaml

FLOAT = "type: float, low: 0, high: 1"
CASES = {
    # YAML below `parameters:` -> what the message must hold
    "{}": ["parameters: the search space has no parameter", "add one"],
    "x: {type: float, low: 2, high: 1}": ["parameters.x.low: low 2.0 is above high 1.0", "swap"],
    "x: {type: float, low: 0, high: 1, log: true}": ["parameters.x.low: 0.0 has no logarithm", "low > 0"],
    "x: {type: float, low: 0, high: 1, step: 0.3}": [
        "parameters.x.step: steps of 0.3 from 0.0 miss high 1.0",
        "use high 0.9 or 1.2",
    ],
    "x: {type: int, low: 1, high: 2.5}": ["parameters.x.high: 2.5 is not a whole number", "float parameter"],
    "x: {type: float, low: a, high: 1}": ["parameters.x.low: 'a' is not a number"],
    "x: {type: float, low: .nan, high: 1}": ["parameters.x.low: nan is not a finite number"],
    "x: {type: float, low: 0, high: 1, default: 3}": ["parameters.x.default: 3.0 is outside 0.0 to 1.0", "widen"],
    "x: {type: choice, values: [a, b, a]}": ["parameters.x.values.2: 'a' equals 'a', listed before", "remove"],
    "x: {type: choice, values: []}": ["parameters.x.values: [] must be a list of at least one value"],
    "x: {type: flaot, low: 0, high: 1}": ["parameters.x.type: 'flaot' is not a type (did you mean 'float'?)"],
    "x: {type: float, low: 0, high: 1, step: 1e-300}": ["parameters.x.step: ", "more than 1e+15 values", "leave step"],
    "x: {type: int, low: 0, high: 9007199254740993}": ["parameters.x.high: ", "more than 15 digits", "use a float"],
    "x: {type: float, low: 0, high: 1, nested: a}": ["parameters.x.nested: 'a' must be a list of keys"],
    "x: {low: 0, high: 1}": ["parameters.x: has no type; add type: one of float, int, choice, constant"],
    "x: {type: float, high: 1}": ["parameters.x.low: a float needs 'low'"],
    "x: {type: float, low: 0, hihg: 1}": ["parameters.x.hihg: a float has no field 'hihg' (did you mean 'high'?)"],
    "lr/x: {type: float, low: 0, high: 1}": ["parameters.lr/x: a name must not contain '/' or '.'", "write 'lr_x'"],
    "eval: {type: constant, value: 1+1}": ["'eval' cannot name a parameter: Ray Tune executes"],
    "2x: {type: constant, value: 1}": ["parameter name '2x' must start with a letter"],
    f"x: {{{FLOAT}, when: {{modle: a}}}}\nmodel: {{type: choice, values: [a]}}": [
        "parameters.x.when.modle: there is no parameter 'modle' (did you mean 'model'?)"
    ],
    f"x: {{{FLOAT}, when: {{model: a}}}}\nmodel: {{type: choice, values: [a]}}": [
        "parameters.x.when.model: 'model' is declared after 'x'; move 'model' before it"
    ],
    "x: {type: choice, values: [a], when: {y: b}}\ny: {type: choice, values: [b], when: {x: a}}": [
        "conditions go in a circle (",
        "x -> y -> x",
        "remove one",
    ],
    f"model: {{type: choice, values: [a, b]}}\nx: {{{FLOAT}, when: {{model: c}}}}": [
        "parameters.x.when.model: 'c' is not a value of 'model' (one of a, b"
    ],
    f"y: {{{FLOAT}}}\nx: {{{FLOAT}, when: {{y: 0.5}}}}": ["parameters.x.when.y: a float is never exactly equal"],
    f"model: {{type: choice, values: [a]}}\nx: {{{FLOAT}, when: {{model: []}}}}": ["no value allowed"],
    "- {type: constant, value: 1}": ["parameters.0: in a list every parameter needs a name"],
    "- {name: x, type: constant, value: 1}\n- {name: x, type: constant, value: 2}": [
        "parameters.x: a second 'x' can exist together with the first",
        "two names",
    ],
}


@pytest.mark.parametrize("text", CASES)
def test_a_mistake_in_yaml_names_field_value_and_way_out(text: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SearchSpace.from_dict({"parameters": parse_yaml(text)})
    for part in CASES[text]:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "a search space is a mapping with the key 'parameters', not None"),
        ([1], "not [1]; or the name of a preset"),
        ({"parameters": {}, "constrains": []}, "no field 'constrains' (did you mean 'constraints'?)"),
        ({"parameters": 3}, "parameters: 3 is not a mapping of name to parameter"),
        (
            {"parameters": {"x": {"type": "constant", "value": 1}}, "constraints": ["os.nothing"]},
            "constraints.0: 'os.nothing' must name a function as package.module:function",
        ),
        (
            {"parameters": {"x": {"type": "constant", "value": 1}}, "constraints": "os:nothing"},
            "constraints.0: 'os:nothing' cannot be imported",
        ),
        (
            {"parameters": {"x": {"type": "constant", "value": 1}}, "constraints": 3},
            "constraints: 3 must be a list of functions, each as package.module:function",
        ),
        (
            {"parameters": {"x": {"type": "constant", "value": 1}}, "constraints": ["..rules:deep"]},
            "constraints.0: '..rules:deep' cannot be imported",
        ),
        (
            {"parameters": {"x": {"type": "constant", "value": 1}}, "constraints": "os:sep"},
            "constraints.0: 'os:sep' is not a function",
        ),
    ],
)
def test_a_mistake_around_the_parameters(document: Any, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        SearchSpace.from_dict(document)
    assert message in str(caught.value)


def test_mistakes_in_python() -> None:
    with pytest.raises(SpaceError, match="parameters: the search space has no parameter"):
        SearchSpace([])
    with pytest.raises(SpaceError, match=r"parameters\.1: 3 is not a parameter; use Float"):
        SearchSpace([Float("x", 0, 1), 3])
    with pytest.raises(SpaceError, match=r"constraints\.0: 'x' is not a function"):
        SearchSpace([Float("x", 0, 1)], ["x"])
    with pytest.raises(SpaceError, match="cannot be written to YAML; use text"):
        Choice("x", [min, max])
    with pytest.raises(SpaceError, match="cannot be written to YAML"):
        Constant("x", {1: 2})
    with pytest.raises(SpaceError, match=r"parameters\.y\.when\.n: 9 is not a value of 'n'"):
        SearchSpace([Int("n", 1, 3), Float("y", 0, 1, when={"n": 9})])


@pytest.mark.parametrize("pair", [(0, 1), [64, 64], (1e-4, 1e-1)])
def test_a_pair_of_numbers_is_refused_with_both_readings(pair: Any) -> None:
    low, high = pair
    with pytest.raises(SpaceError) as caught:
        SearchSpace.parse({"x": pair, "y": 3})
    assert str(caught.value).startswith(
        f"x: {pair!r} may be a range or a constant; for a range write tune.uniform({low}"
    )
    assert f"for a constant tune.choice([{[low, high]}])" in str(caught.value)
    beside = SearchSpace.parse({"layers": [64, 64, 64], "x": tune.uniform(0, 1)})
    assert beside.default() == {"layers": [64, 64, 64], "x": 0.5}


@pytest.mark.parametrize(
    "grid",
    [
        {"alpha": [0.1, 1, 10]},
        {"kernel": ["rbf", "linear"], "C": [1, 10, 100]},
        {"C": (1, 100, "log-uniform")},
        {"on": [True]},
    ],
)
def test_a_grid_of_lists_as_other_tools_have_it_is_no_space_of_constants(grid: dict[str, Any]) -> None:
    with pytest.raises(SpaceError, match=r"\] is a constant, and nothing varies; for a choice write tune\.choice"):
        SearchSpace.parse(grid)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(1, 4), [1, 2, 3]),
        (np.array([0.5, 1.0]), [0.5, 1.0]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([[8, 8], [4, 4]]), [[8, 8], [4, 4]]),
        (pd.Series([3, 1]), [3, 1]),
        (pd.Index(["x", "y"]), ["x", "y"]),
        (range(2, 5), [2, 3, 4]),
    ],
)
def test_the_values_of_a_choice_may_be_an_array(values: Any, expected: list[Any]) -> None:
    for space in (SearchSpace([Choice("a", values)]), SearchSpace.parse({"a": {"type": "choice", "values": values}})):
        assert [config["a"] for config in space.grid()] == expected
        assert SearchSpace.from_dict(space.to_dict()) == space
    with pytest.raises(SpaceError, match="must be a list of at least one value"):
        Choice("a", np.array([]))
    with pytest.raises(SpaceError, match="must be a list of at least one value"):
        Choice("a", np.array(3))


def test_what_is_too_much_is_refused_with_its_bound() -> None:
    """Each of these took minutes, or more memory than there is."""
    with pytest.raises(SpaceError, match=r"x\.values: 100,000 values are more than 10,000; use an int or a float"):
        Choice("x", list(range(100_000)))
    with pytest.raises(SpaceError, match=r"parameters: 1,001 parameters are more than 1,000"):
        SearchSpace([Constant(f"x{number}", 0) for number in range(1001)])
    with pytest.raises(SpaceError, match=r"levels\.x: 100000000000000000000 must be at most 10,000"):
        SearchSpace([Float("x", 0, 1)]).grid(10**20)
    with pytest.raises(SpaceError, match=r"x\.high: has more than 308 digits"):
        Float("x", 0, 10**400)


def test_a_choice_of_thousands_finds_its_values() -> None:
    values = [*range(9_000), *([number, "a"] for number in range(900))]
    choice = Choice("x", values, default=[899, "a"])
    space = SearchSpace([choice, Float("y", 0, 1, when={"x": list(range(9_000))})])
    assert all(space.labelled["x"].contains(value) for value in values)
    assert (choice.index(8_999), choice.index([899, "a"])) == (8_999, 9_899)
    assert not any(choice.contains(value) for value in (True, "0", [900, "a"], {"a": 1}, object(), {1}))
    with pytest.raises(SpaceError, match=r"x\.values\.2: \[1, 2\] equals \[1, 2\], listed before"):
        Choice("x", [[1, 2], [2, 1], (1, 2)])


def test_a_billion_points_are_refused_with_their_number() -> None:
    space = SearchSpace([Float(f"x{i}", 0, 1) for i in range(9)])
    with pytest.raises(SpaceError, match=r"levels: the grid has 1,000,000,000 combinations, more than .* 10,000"):
        algorithms.parse({"name": "grid", "levels": 10}).build(space, metric="m", mode="max", seed=0)
    with pytest.raises(SpaceError, match=r"levels\.x99: |there is no parameter 'x99'"):
        space.grid({"x99": 3})
    with pytest.raises(SpaceError, match=r"levels\.x1: 0 must be a whole number of at least 1"):
        space.grid({"x1": 0})


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "space.yaml, line 2: *a is an alias; write the value out"),
        ("x: !!python/object/apply:os.system [echo]", "space.yaml, line 1: the tag tag:yaml.org,2002:python/object"),
        ("x: !mine 3", "the tag !mine is not allowed; write a plain value"),
        ("x: 1\ny: 2\nx: 3", "space.yaml, line 3: the key 'x' occurs twice; remove one of them"),
        ("? [a, b]\n: 1", "a key must be a plain value"),
        ("x: [1, 2", "is not YAML: while parsing a flow sequence"),
        ("[" * 5000, "space.yaml, line 1: more than 100 levels inside each other"),
        ("x: " + "9" * 5000, "space.yaml is not YAML: Exceeds the limit"),
        ("x: 1\n---\ny: 2", "but found another document"),
    ],
)
def test_yaml_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        parse_yaml(text, "space.yaml")
    assert message in str(caught.value)


def test_yaml_numbers_and_words_mean_what_they_look_like(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("a: [1e-4, 1.0e-4, 5E3, 3, .5, -1e2, on, off, yes, no, NO, true, False, null, 2020-01-02, 1_0]\n")
    assert read_yaml(path)["a"] == [
        1e-4, 1e-4, 5000.0, 3, 0.5, -100.0, "on", "off", "yes", "no", "NO", True, False, None, "2020-01-02", 10,
    ]  # fmt: skip


def test_ids_and_times_stay_what_they_look_like() -> None:
    assert parse_yaml("[007, 12:30, 0, -7, 0x1f, 0o7, 12e3, 1.]") == ["007", "12:30", 0, -7, 31, "0o7", 12000.0, 1.0]
    assert parse_yaml("{<<: 1, no: 2, =: 3}") == {"<<": 1, "no": 2, "=": 3}


@pytest.mark.parametrize(
    "text",
    ["1e-4", "12e3", "on", "no", "007", "12:30", "2020-01-02", "~", "null", "true", "1_0", "0x1f", "a: b", "é", ""],
)
def test_what_is_written_as_yaml_is_read_back(text: str) -> None:
    values = {text: [text, 1e-9, float("inf"), 7, None, True, {"x": text}]}
    assert parse_yaml(dump_yaml(values)) == values


def test_numbers_that_other_readers_left_as_text_still_count() -> None:
    document = {"parameters": {"x": {"type": "float", "low": "1e-4", "high": "1e2", "log": True}}}
    assert SearchSpace.from_dict(document) == SearchSpace([Float("x", 1e-4, 1e2, log=True)])


def test_unknown_presets_and_tasks() -> None:
    with pytest.raises(SpaceError, match=r"there is no preset 'xgbost' \(did you mean 'xgboost'\?\); presets:"):
        presets.load("xgbost")
    with pytest.raises(SpaceError, match="'tabular-regression' is for regression, not binary"):
        presets.load("tabular-regression", task="binary")
    with pytest.raises(SpaceError, match=r"'regresion' is not a task \(did you mean 'regression'\?\)"):
        presets.load("ridge", task="regresion")
    with pytest.raises(SpaceError, match="families: 'fast' is a composition of ridge, logistic"):
        presets.compose(["ridge", "fast"])
    with pytest.raises(SpaceError, match="families: no model family given"):
        presets.compose([])
    with pytest.raises(SpaceError, match="'ridge' equals 'ridge', listed before"):
        presets.compose(["ridge", "ridge"])


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("bayes", "there is no algorithm 'bayes' (did you mean 'bayesopt'?); it is one of"),
        ("sigopt", "Ray Tune dropped its SigOpt wrapper"),
        (3, "3 is not an algorithm; write its name, or a mapping with name and options"),
        ({"n_startup_trials": 3}, "is not an algorithm"),
        ({"name": "optuna", "startup": 3}, "its options are sampler, profile, n_startup_trials"),
        ({"name": "optuna", "sampler": "tpee"}, "sampler: 'tpee' must be 'tpe', 'gp' or 'cmaes'"),
        ({"name": "grid", "levels": {"x": 0}}, "levels.x: 0 must be at least 1"),
        ({"name": "bohb", "random_fraction": 2}, "random_fraction: 2 must be at most 1"),
    ],
)
def test_a_mistake_in_an_algorithm(definition: Any, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        algorithms.parse(definition)
    assert message in str(caught.value)


def test_a_mode_is_max_or_min() -> None:
    with pytest.raises(SpaceError, match="mode: 'maximise' must be 'max' or 'min'"):
        algorithms.parse("random").build(presets.load("ridge"), metric="m", mode="maximise", seed=1)
