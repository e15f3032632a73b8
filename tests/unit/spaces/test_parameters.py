"""Parameters and spaces: what may vary, which points are inside, and what the whole says of itself."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError, presets

PARAMETERS = [
    Float("x", -2, 3),
    Float("x", 1e-5, 1e3, log=True),
    Float("x", 0, 1, step=0.1),
    Float("x", 0.1, 1.0, step=0.1, log=True),
    Float("x", 7, 7),
    Int("x", -3, 3),
    Int("x", 1, 1024, log=True),
    Int("x", 2, 20, step=3),
    Int("x", 4, 64, step=4, log=True),
    Choice("x", ["a", None, True, 2, [1, "b"]]),
    Constant("x", {"a": [1, 2]}),
]


@given(u=st.floats(0, 1), parameter=st.sampled_from(PARAMETERS))
@settings(deadline=None)
def test_every_coordinate_is_a_value_and_every_value_a_coordinate(u: float, parameter: Any) -> None:
    value = parameter.at(u)
    assert parameter.contains(value)
    assert 0 <= parameter.position(value) <= 1
    again = parameter.at(parameter.position(value))
    assert again == (pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.describe())
def test_defaults_levels_and_ends_are_inside(parameter: Any) -> None:
    assert parameter.contains(parameter.default)
    for count in (1, 2, 3, 50):
        values = parameter.levels(count)
        assert all(parameter.contains(value) for value in values)
        assert len({json.dumps(value) for value in values}) == len(values)
    if parameter.kind in ("int", "float") and not parameter.single:
        assert parameter.levels(2) == [parameter.low, parameter.high]
        assert parameter.levels(1) == [parameter.default]


def test_values_of_a_step_are_the_decimal_ones() -> None:
    assert Float("x", 0, 1, step=0.1).levels(99) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_each_value_of_a_finite_parameter_gets_its_share() -> None:
    rng = np.random.default_rng(0)
    for parameter in (Int("x", 1, 4), Float("x", 0, 1, step=0.25), Choice("x", ["a", "b", "c"])):
        count = Counter(parameter.at(u) for u in rng.random(6000))
        share = 6000 / parameter.size
        # 6 standard deviations: a fair mapping fails once in some 10^8 runs, and the seed is fixed.
        assert all(abs(n - share) < 6 * share**0.5 for n in count.values())
        assert len(count) == parameter.size


def test_a_logarithmic_scale_gives_each_decade_its_share() -> None:
    draws = [Float("x", 1e-3, 1e3, log=True).at(u) for u in np.random.default_rng(0).random(6000)]
    decades = Counter(int(np.floor(np.log10(x))) for x in draws)
    assert all(800 < decades[k] < 1200 for k in range(-3, 3))


def test_numpy_values_and_tuples_become_plain() -> None:
    choice = Choice("x", [np.int64(3), (1, 2), np.float64(0.5)])
    assert choice.values == (3, [1, 2], 0.5)
    assert type(choice.values[0]) is int
    given = SearchSpace([choice, Float("y", np.float32(0), np.int64(4))])
    config = given.complete({"x": np.float64(0.5), "y": np.int64(2)})
    assert config == {"x": 0.5, "y": 2.0}
    assert type(config["y"]) is float


def test_a_configuration_cannot_change_the_space() -> None:
    space = SearchSpace([Choice("layers", [[8, 8]])])
    space.default()["layers"].append(9)
    assert space.default() == {"layers": [8, 8]}


def nested() -> SearchSpace:
    return SearchSpace(
        [
            Choice("model", ["linear", "svm", "none"]),
            Choice("penalty", ["l2", "elastic"], when={"model": "linear"}),
            Float("ratio", 0, 1, when={"penalty": "elastic"}),
            Choice("kernel", ["rbf", "poly"], when={"model": "svm"}),
            Int("degree", 2, 5, when={"kernel": "poly"}),
            Float("C", 0.1, 10, log=True, when={"model": ["linear", "svm"]}),
        ]
    )


def test_conditions_to_any_depth() -> None:
    space = nested()
    assert space.default() == {"model": "linear", "penalty": "l2", "C": pytest.approx(1.0)}
    assert space.contains({"model": "none"})
    assert space.contains({"model": "svm", "kernel": "poly", "degree": 3, "C": 1})
    assert not space.contains({"model": "svm", "kernel": "rbf", "degree": 3, "C": 1})
    shapes = {tuple(space.sample(np.random.default_rng(seed))) for seed in range(200)}
    assert shapes == {
        ("model",),
        ("model", "penalty", "C"),
        ("model", "penalty", "ratio", "C"),
        ("model", "kernel", "C"),
        ("model", "kernel", "degree", "C"),
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": "svm", "C": 1}, "kernel: is missing; it is one of rbf, poly"),
        ({"model": "none", "C": 1}, "C: does not exist here: it needs model=linear|svm"),
        ({"model": "none", "gama": 1}, "gama: there is no such parameter; remove it"),
        ({"model": "tree"}, "model: 'tree' is not inside: one of linear, svm, none"),
        ({"model": "svm", "kernel": "poly", "degree": 9, "C": 1}, "degree: 9 is not inside: int 2 to 5"),
        ({"model": "svm", "kernel": "poly", "degree": 2.5, "C": 1}, "degree: 2.5 is not inside"),
        ({"model": "svm", "kernel": "poly", "degree": True, "C": 1}, "degree: True is not inside"),
        ([1], "is not a configuration"),
    ],
)
def test_a_point_outside_is_told_why(config: Any, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        nested().check(config)
    assert message in str(caught.value)
    assert not nested().contains(config)


def test_the_grid_multiplies_only_what_exists() -> None:
    grid = nested().grid({"ratio": 3, "degree": 9, "C": 2})
    configs = list(grid)
    # linear: (l2 + elastic x 3 ratios) x 2 C; svm: (rbf + poly x 4 degrees) x 2 C; none
    assert grid.size == len(grid) == len(configs) == (1 + 3) * 2 + (1 + 4) * 2 + 1
    assert configs == list(nested().grid({"ratio": 3, "degree": 9, "C": 2}))
    assert configs[0] == {"model": "linear", "penalty": "l2", "C": 0.1}
    assert len({json.dumps(config) for config in configs}) == len(configs)
    assert all(nested().contains(config) for config in configs)


def test_a_grid_knows_its_size_without_being_made() -> None:
    space = SearchSpace([Float(f"x{i}", 0, 1) for i in range(9)])
    assert space.grid(10).size == 10**9
    assert next(iter(space.grid(10))) == {f"x{i}": 0.0 for i in range(9)}


def small(config: dict[str, Any]) -> bool:
    return bool(config["a"] * config["b"] <= 6)


def test_constraints_hold_for_samples_grids_and_points() -> None:
    space = SearchSpace([Int("a", 1, 6), Int("b", 1, 6)], constraints=[small])
    rng = np.random.default_rng(0)
    assert all(small(space.sample(rng)) for _ in range(100))
    assert [tuple(c.values()) for c in space.grid(99)] == [
        (a, b) for a in range(1, 7) for b in range(1, 7) if a * b <= 6
    ]
    assert not space.contains({"a": 3, "b": 3})
    with pytest.raises(SpaceError, match="the constraints do not allow"):
        space.complete({"a": 6, "b": 6})
    with pytest.raises(SpaceError, match=r"default: the constraints do not allow"):
        SearchSpace([Int("a", 1, 9, default=9), Int("b", 1, 9, default=9)], [small]).default()
    with pytest.raises(SpaceError, match="refused 2000 random configurations in a row"):
        SearchSpace([Float("a", 0, 1)], [lambda config: config["a"] > 2]).sample(rng)
    with pytest.raises(SpaceError, match=r"constraints\.0: the constraint raised KeyError"):
        SearchSpace([Float("a", 0, 1)], [lambda config: config["b"] > 2]).sample(rng)


def test_equality_follows_what_is_searched() -> None:
    space = SearchSpace([Float("x", 0, 1, why="a sentence"), Int("n", 1, 3)])
    assert space == SearchSpace([Float("x", 0.0, 1.0, source="a page"), Int("n", 1, 3)])
    assert hash(space) == hash(SearchSpace([Float("x", 0, 1), Int("n", 1, 3)]))
    for other in (
        SearchSpace([Int("n", 1, 3), Float("x", 0, 1)]),
        SearchSpace([Float("x", 0, 1.5), Int("n", 1, 3)]),
        SearchSpace([Float("x", 0, 1, default=0.2), Int("n", 1, 3)]),
        SearchSpace([Float("x", 0, 1), Int("n", 1, 3)], [small]),
    ):
        assert space != other
        assert space.fingerprint() != other.fingerprint()
    assert SearchSpace([Int("a", 1, 2)], [lambda c: c["a"] > 1]) != SearchSpace(
        [Int("a", 1, 2)], [lambda c: c["a"] > 0]
    )


def test_spaces_and_errors_cross_process_borders() -> None:
    space = presets.load("tabular-regression")
    assert pickle.loads(pickle.dumps(space)) == space
    error = SpaceError("wrong", path="parameters.x")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path) == ("parameters.x: wrong", "parameters.x")


def test_written_and_read_it_is_the_same_space() -> None:
    space = SearchSpace([*nested().parameters, Float("C", 1, 2, when={"model": "none"})], [small])
    for text in (json.dumps(space.to_dict(), sort_keys=True), yaml.safe_dump(space.to_dict())):
        assert SearchSpace.from_dict(yaml.safe_load(text)) == space


def test_a_nameless_constraint_is_written_but_not_brought_back() -> None:
    space = SearchSpace([Int("a", 1, 3)], [lambda config: config["a"] > 1])
    document = json.loads(json.dumps(space.to_dict()))
    read = pickle.loads(pickle.dumps(SearchSpace.from_dict(document)))
    assert (read, read.to_dict(), read.describe()) == (space, document, space.describe())
    for asked in (read.default, lambda: read.sample(np.random.default_rng(0)), lambda: list(read.grid())):
        with pytest.raises(SpaceError, match=r"constraints\.0: .* no file can bring back; pass the same"):
            asked()


def test_describe_is_what_a_reader_needs() -> None:
    assert nested().describe() == "\n".join(
        [
            "model    one of linear, svm, none, default linear",
            "when model=linear:",
            "  penalty  one of l2, elastic, default l2",
            "when penalty=elastic:",
            "  ratio    float 0.0 to 1.0, default 0.5",
            "when model=svm:",
            "  kernel   one of rbf, poly, default rbf",
            "when kernel=poly:",
            "  degree   int 2 to 5, default 4",
            "when model=linear|svm:",
            "  C        float 0.1 to 10.0, log, default 1.0",
        ]
    )


def test_the_cheap_end_is_told_and_is_no_part_of_what_is_searched() -> None:
    plain, cheap = SearchSpace([Int("depth", 1, 9)]), SearchSpace([Int("depth", 1, 9, cheap="high")])
    assert cheap == plain
    (parameter,) = SearchSpace.from_dict(cheap.to_dict()).parameters
    assert isinstance(parameter, Int)
    assert parameter.cheapest == 9
    assert Float("x", 2, 3, cheap="low").cheapest == 2.0
    assert Float("x", 2, 3).cheapest is None
    with pytest.raises(SpaceError, match=r"x\.cheap: 'cheap' must be 'low' or 'high'"):
        Float("x", 2, 3, cheap="cheap")


def test_one_and_one_point_zero_are_two_values() -> None:
    """In scikit-learn `max_features=1` is one feature and 1.0 all of them."""
    choice = Choice("x", ["sqrt", None, 1, 1.0, 0.5])
    assert [choice.index(value) for value in choice.values] == [0, 1, 2, 3, 4]
    assert [repr(choice.value(index)) for index in (2, 3)] == ["1", "1.0"]
    space = SearchSpace([choice])
    assert [repr(space.complete({"x": value})["x"]) for value in (1, 1.0)] == ["1", "1.0"]
    assert [repr(config["x"]) for config in space.grid()] == ["'sqrt'", "None", "1", "1.0", "0.5"]
    assert SearchSpace([Choice("x", [1, 2])]) != SearchSpace([Choice("x", [1.0, 2])])
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))).parameters[0].values == choice.values


def test_a_value_of_another_type_is_the_one_that_is_listed() -> None:
    choice = Choice("x", [0.5, 1.0, [2.0, 3]], default=1)
    assert repr(choice.default) == "1.0"
    space = SearchSpace([choice])
    assert repr(space.complete({"x": 1})) == "{'x': 1.0}"
    assert repr(space.complete({"x": [2, 3]})) == "{'x': [2.0, 3]}"
    assert not choice.contains(True)


def test_a_condition_that_cannot_tell_values_apart_is_refused() -> None:
    when = Int("n", 1, 3, when={"x": 1})
    assert SearchSpace([Choice("x", [1, 2.0]), when])
    with pytest.raises(SpaceError, match=r"n\.when\.x: a condition does not tell 1 from 1\.0; use texts"):
        SearchSpace([Choice("x", [1, 1.0]), when])
