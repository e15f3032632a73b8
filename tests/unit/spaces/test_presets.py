"""Ready-made spaces, their YAML form and its JSON Schema, and what comes from Ray Tune."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import jsonschema
import numpy as np
import pytest

from search_spaces import Choice, Float, Int, SearchSpace, SpaceError, json_schema, presets
from search_spaces.yaml_text import parse_yaml
from tuning.models.registry import families
from tuning.planning.model_space import check_configurations
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION

FAMILIES = sorted(set(families()) - {"constant"})  # which has no parameter
STEPS = {"n_estimators", "max_iter", "num_boost_round", "n_iter", "epochs", "num_rounds", "iterations"}


def test_every_family_has_a_preset_and_the_compositions_are_there() -> None:
    assert presets.families() == FAMILIES
    assert set(presets.names()) - set(FAMILIES) == {
        "tabular-regression",
        "tabular-classification",
        "fast",
        "boosting",
    }
    for task in presets.TASKS:
        assert presets.families(task) == [name for name in FAMILIES if task in families()[name].tasks]
    assert all(presets.title(name).endswith(".") for name in presets.names())


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_is_a_sound_space(name: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for task in (None, *presets.TASKS):
        if not presets.fits(name, task):
            continue
        space = presets.load(name, task)
        assert space.contains(space.default())
        assert {parameter.name for parameter in space.parameters} & STEPS == set()
        validator.validate(space.to_dict())
        assert SearchSpace.from_dict(space.to_dict()) == space
        for parameter in space.parameters:
            if parameter.name != "model":
                assert parameter.why.endswith("."), parameter
                assert parameter.source, parameter


def test_the_default_is_the_linear_family() -> None:
    assert presets.load("tabular-regression").default() == {"model": "ridge", "alpha": 1.0}
    assert presets.load("tabular-classification").default() == {"model": "logistic", "C": 1.0}
    assert presets.load("fast", task="multiclass").default() == {"model": "logistic", "C": 1.0}
    assert presets.load("fast", task="regression").default() == {"model": "ridge", "alpha": 1.0}


def estimators() -> dict[tuple[str, str], Any]:
    from sklearn import ensemble, linear_model, neighbors, neural_network, svm

    found: dict[tuple[str, str], Any] = {
        ("ridge", "regression"): linear_model.Ridge,
        ("lasso", "regression"): linear_model.Lasso,
        ("elastic_net", "regression"): linear_model.ElasticNet,
        ("logistic", "binary"): linear_model.LogisticRegression,
    }
    for family, module, stem in (
        ("knn", neighbors, "KNeighbors"),
        ("random_forest", ensemble, "RandomForest"),
        ("extra_trees", ensemble, "ExtraTrees"),
        ("hist_gradient_boosting", ensemble, "HistGradientBoosting"),
        ("mlp", neural_network, "MLP"),
        ("sgd", linear_model, "SGD"),
    ):
        found[family, "regression"] = getattr(module, f"{stem}Regressor")
        found[family, "binary"] = getattr(module, f"{stem}Classifier")
    found |= {("svm", "regression"): svm.SVR, ("svm", "binary"): svm.SVC}
    return found | {("linear_svm", "regression"): svm.LinearSVR, ("linear_svm", "binary"): svm.LinearSVC}


# What cannot be the library's default, and why.
OTHERWISE = {
    ("lasso", "alpha"): 0.01,  # the library's 1 leaves only the mean of a standardised target
    ("elastic_net", "alpha"): 0.01,
    ("hist_gradient_boosting", "l2_regularization"): 1e-10,  # stands for 0
    ("mlp", "width"): 100,  # hidden_layer_sizes=(100,)
    ("mlp", "depth"): 1,
    ("sgd", "eta0"): 0.01,
}


def test_every_family_of_scikit_learn_is_compared_with_it() -> None:
    others = {"catboost", "lightgbm", "xgboost", "xgboost_ray"}  # their parameters' names are not in their signatures
    assert {family for family, _ in estimators()} == set(FAMILIES) - others


@pytest.mark.parametrize(("family", "task"), estimators())
def test_defaults_are_the_librarys(family: str, task: str) -> None:
    signature = inspect.signature(estimators()[family, task]).parameters
    for name, value in presets.load(family, task).default().items():
        if name == "model":
            assert value == family
        elif (family, name) in OTHERWISE:
            assert value == OTHERWISE[family, name]
        else:
            assert value == signature[name].default, name


def test_composed_by_hand() -> None:
    space = presets.compose(["xgboost", "ridge"])
    assert space.default()["model"] == "xgboost"
    assert space.complete({"model": "ridge"}) == {"model": "ridge", "alpha": 1.0}
    assert presets.load("ridge").default() == {"model": "ridge", "alpha": 1.0}
    svm = presets.compose(["svm"], task="regression")
    assert "epsilon" in svm.default()
    assert "epsilon" not in presets.compose(["svm"], task="binary").default()


YAML = """
parameters:
  model: {type: choice, values: [ridge, forest], default: forest}
  alpha: {type: float, low: 1e-4, high: 1e3, log: true, default: 1, when: {model: ridge}}
  depth: {type: int, low: 1, high: 9, step: 2, when: {model: [forest]}, why: Deeper overfits., source: a book}
  seed: {type: constant, value: 3}
constraints: [tests_rules:any_config]
"""


def any_config(config: dict[str, Any]) -> bool:
    return True


def test_python_and_yaml_are_the_same_space(monkeypatch: pytest.MonkeyPatch) -> None:
    from search_spaces import Constant

    monkeypatch.setitem(sys.modules, "tests_rules", sys.modules[__name__])
    python = SearchSpace(
        [
            Choice("model", ["ridge", "forest"], default="forest"),
            Float("alpha", 1e-4, 1e3, log=True, default=1, when={"model": "ridge"}),
            Int("depth", 1, 9, step=2, when={"model": "forest"}),
            Constant("seed", 3),
        ],
        constraints=[any_config],
    )
    document = parse_yaml(YAML)
    jsonschema.validate(document, json_schema())
    assert SearchSpace.from_dict(document) == python
    assert SearchSpace.from_dict(document).parameters[2].why == "Deeper overfits."
    assert SearchSpace.from_dict(json.loads(json.dumps(python.to_dict()))) == python


def test_the_schema_refuses_what_we_refuse() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    jsonschema.Draft202012Validator.check_schema(json_schema())
    for text in (
        "{}",
        "parameters: {}",
        "parameters: {x: {type: float, low: 0}}",
        "parameters: {x: {type: float, low: 0, high: 1, hihg: 2}}",
        "parameters: {a/b: {type: constant, value: 1}}",
        "parameters: {x: {type: choice, values: []}}",
        "parameters: {x: {type: int, low: 0, high: 1, step: 0}}",
        "parameters: [{type: constant, value: 1}]",
        "parameters: {x: {type: constant, value: 1}}\nconstrains: []",
    ):
        document = parse_yaml(text)
        assert not validator.is_valid(document), text
        with pytest.raises(SpaceError):
            SearchSpace.from_dict(document)


# --- from Ray Tune ----------------------------------------------------------------------------------


def test_ray_tune_domains() -> None:
    from ray import tune

    space = SearchSpace.from_ray_tune(
        {
            "a": tune.uniform(0, 2),
            "b": tune.loguniform(1e-4, 1e-1),
            "c": tune.quniform(0, 1, 0.25),
            "d": tune.qloguniform(0.5, 4, 0.5),
            "e": tune.randint(1, 5),
            "f": tune.lograndint(1, 5),
            "g": tune.qrandint(3, 10, 4),
            "h": tune.qrandint(1, 5, 1),
            "i": tune.choice(["x", (1, 2)]),
            "j": tune.grid_search([3, 4]),
            "k": [1, "two"],
        }
    )
    assert [p.describe().rpartition(", default")[0] or p.describe() for p in space.parameters] == [
        "float 0.0 to 2.0",
        "float 0.0001 to 0.1, log",
        "float 0.0 to 1.0, step 0.25",
        "float 0.5 to 4.0, step 0.5, log",
        "int 1 to 4",
        "int 1 to 4, log",
        "int 4 to 8, step 4",
        "int 1 to 4",
        "one of x, [1, 2]",
        "one of 3, 4",
        'always [1, "two"]',
    ]


def test_ray_tune_samples_lie_in_the_converted_space_and_the_other_way_round() -> None:
    from ray import tune
    from ray.tune.search.sample import Domain

    param_space = {
        "a": tune.quniform(0, 1, 0.1),
        "b": tune.lograndint(2, 9),
        "n": {"c": tune.choice(["u", "v"]), "k": 3},
        "q": tune.qlograndint(4, 64, 4),
    }
    space = SearchSpace.from_ray_tune(param_space)
    for seed in range(50):
        config = {
            "a": param_space["a"].sample(random_state=seed),
            "b": param_space["b"].sample(random_state=seed),
            "n__c": param_space["n"]["c"].sample(random_state=seed),
            "n__k": 3,
            "q": param_space["q"].sample(random_state=seed),
        }
        assert space.contains(config), config
    ours = space.nest(space.sample(np.random.default_rng(0)))
    assert set(ours) == set(param_space)
    assert all(domain.is_valid(ours[name]) for name, domain in param_space.items() if isinstance(domain, Domain))


def test_a_space_is_read_in_every_form() -> None:
    from ray import tune

    ours = SearchSpace([Float("x", 0, 1)])
    assert SearchSpace.parse(ours) is ours
    assert SearchSpace.parse({"x": {"type": "float", "low": 0, "high": 1}}) == ours
    assert SearchSpace.parse({"parameters": {"x": {"type": "float", "low": 0, "high": 1}}}) == ours
    assert SearchSpace.parse({"x": tune.uniform(0, 1)}) == ours
    # Ray Tune's with nothing but nested keys, a grid, or a key that YAML uses otherwise
    for given, name in (
        ({"a": {"b": tune.uniform(0, 1)}}, "a__b"),
        ({"a": {"b": {"c": tune.choice([1, 2])}}}, "a__b__c"),
        ({"a": tune.grid_search([1, 2])}, "a"),
        ({"parameters": {"lr": tune.uniform(0, 1)}}, "parameters__lr"),
    ):
        assert [parameter.name for parameter in SearchSpace.parse(given).parameters] == [name]
    for given, message in (
        ({}, "has no parameter"),
        ({"x": {"low": 0, "high": 1}}, r"parameters\.x: has no type"),
        ({"x": {"type": "float", "low": 0, "high": 1}, "n": 3}, r"parameters\.n: 3 is not a parameter"),
        ({"a": tune.uniform(0, 1), "x": {"type": "float", "low": 0, "high": 1}}, "x: .* in one form"),
        ({"a": {"b.c": tune.uniform(0, 1)}}, r"a\.b\.c: a name must not contain"),
        ({"a": {1: tune.uniform(0, 1)}}, "a: the key 1 is not text; write 'p_1'"),
        ("ridge", "a search space is a mapping"),
    ):
        with pytest.raises(SpaceError, match=message):
            SearchSpace.parse(given)


def test_ray_tune_branches_become_conditions_and_come_back_nested() -> None:
    from ray import tune

    space = SearchSpace.from_ray_tune(
        {
            "lr": tune.loguniform(1e-4, 1),
            "model": tune.choice(
                [
                    {"kind": "rf", "depth": tune.randint(2, 10), "C": tune.uniform(0, 1)},
                    {"kind": "svm", "C": tune.loguniform(1e-2, 10), "kernel": tune.choice([{"poly": 2}, "rbf"])},
                ]
            ),
            "drop": tune.choice([0, tune.uniform(0.1, 0.5)]),
        }
    )
    assert space.conditional
    assert SearchSpace.from_dict(space.to_dict()) == space
    seen = set()
    rng = np.random.default_rng(0)
    for _ in range(100):
        config = space.sample(rng)
        assert space.contains(config)
        nested = space.nest(config)
        assert set(nested) == {"lr", "model", "drop"}
        assert nested["drop"] == 0 or 0.1 <= nested["drop"] <= 0.5
        model = nested["model"]
        if model["kind"] == "rf":
            assert set(model) == {"kind", "depth", "C"}
        else:
            assert model["kernel"] in ({"poly": 2}, "rbf")
        seen.add((model["kind"], nested["drop"] == 0))
    assert len(seen) == 4


def test_ray_tune_spaces_that_cannot_be_searched() -> None:
    from ray import tune

    for param_space, message in (
        ({"x": tune.randn(0, 1)}, "x: normal distributions have no bounds; use tune.uniform"),
        ({"x": tune.sample_from(lambda _: 1)}, "x: sample_from hides its values"),
        ({"x": [tune.uniform(0, 1)]}, "x: a list that holds domains has no names"),
        ({"m": {"x": tune.randn()}}, "m__x: normal distributions"),
        ({3: tune.uniform(0, 1)}, "the key 3 is not text"),
        ({"eval": "1 + 1"}, "'eval' cannot name a parameter"),
        ({"x": {"eval": "1 + 1"}}, "Ray Tune executes a key of that name"),
        ({}, "has no parameter"),
        (["x"], "is not a Ray Tune space"),
        ({"a/b": tune.uniform(0, 1)}, "must not contain '/'"),
    ):
        with pytest.raises(SpaceError) as caught:
            SearchSpace.from_ray_tune(param_space)
        assert message in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize("task", [REGRESSION, BINARY, MULTICLASS])
def test_every_preset_passes_the_check_of_written_spaces(task: str) -> None:
    for name in presets.families(task):
        check_configurations(presets.load(name, task), {}, task)


def test_import_is_light() -> None:
    code = (
        "import search_spaces, sys; search_spaces.presets.load('ridge'); search_spaces.algorithms.parse('optuna');"
        "search_spaces.SearchSpace.from_dict(search_spaces.presets.load('xgboost').to_dict());"
        "print([m for m in ('ray', 'optuna', 'hyperopt', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
