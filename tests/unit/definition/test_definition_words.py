"""What is said of a wrong value in a definition: the field, the rule and the value, in words of ours."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tuning.definition.definition import define
from tuning.definition.yaml_file import load_yaml
from tuning.errors import DefinitionError

GIVEN: dict[str, Any] = {"data": "x", "target": "y"}
BOTH = ["random", "optuna"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"trials": "many"}, "trials: must be a whole number (got 'many')"),
        ({"trials": 1.5}, "trials: must be a whole number (got 1.5)"),
        ({"trials": True}, "trials: must be a number (got True)"),
        ({"limits": {"memory_gb": False}}, "limits.memory_gb: must be a number (got False)"),
        ({"data": {"acme": {"path": "a.csv", "trials": True}}}, "customer 'acme': trials: must be a number (got True)"),
        ({"algorithm": {"name": "optuna", "n_startup_trials": True}}, "n_startup_trials: True must be a number"),
        ({"scheduler": {"name": "asha", "grace_period": True}}, "grace_period = True: must be a number"),
        ({"stop": {"study_plateau": True}}, "trials = True: must be a number"),
        ({"trials": 0}, "trials: must be at least 1 (got 0)"),
        ({"by": {"a": 1}}, "by: must be a list"),
        ({"customers": [True]}, "customers.0: must be text (got True)"),
        ({"winner": "luck"}, "winner: must be 'best' or 'one_standard_error' (got 'luck')"),
        ({"ensemble": "vote"}, "ensemble: must be 'greedy' or 'none' (got 'vote')"),
        (
            {"ensemble": "greedy", "winner": "one_standard_error"},
            "ensemble: an ensemble is never simpler than its members",
        ),
        ({"save_models": "maybe"}, "save_models: must be true or false (got 'maybe')"),
        ({"split": {"test": 1.5}}, "split.test: must be below 1 (got 1.5)"),
        ({"limits": {"trial_seconds": "x"}}, "limits.trial_seconds: must be a number (got 'x')"),
        (
            {"mlflow": {"record_trials": "top3"}},
            "mlflow.record_trials: 'top3' must be auto, all, none or top:K with a whole number K, such as top:5",
        ),
        (
            {"mlflow": "perhaps"},
            "mlflow: 'perhaps' is neither true nor false, nor a mapping such as {exp",
        ),
        ({"mlflow": "yes"}, "mlflow: 'yes' is neither true nor false"),
        ({"mlflow": 1}, "mlflow: 1 is neither true nor false"),
        (
            {"name": "a/b"},
            "name: 'a/b' must begin with a letter or digit and have at most 100 letters (a to z,",
        ),
        ({"name": ""}, "name: '' must begin with a letter or digit"),
        ({"name": "a\n"}, "name: 'a\\n' must begin with a letter or digit"),
        ({"storage": ""}, "storage: must not be empty (got '')"),
        ({"algorithm": "bayes"}, "algorithm: there is no algorithm 'bayes' (did you mean 'bayesopt'?)"),
        ({"algorithm": {"name": "optuna", "group": "x"}}, "algorithm: group: 'x' must be true or false"),
        ({"algorithm": {"name": "grid", "levels": {"C": 0}}}, "algorithm: levels.C: 0 must be at least 1"),
        ({"scheduler": {"name": "asha", "grace_period": 0}}, "grace_period = 0: must be at least 1"),
        ({"customers": 3}, "customers: 3 is no list of ids; name the customers, such as [acme, 141]"),
        ({"customers": True}, "customers: True is no list of ids"),
        ({"customers": math.inf}, "customers: inf is no list of ids"),
        ({"customers": [math.inf]}, "customers.0: must be text (got inf)"),
        ({"customers": {"a": 1}}, "customers: {'a': 1} is no list of ids"),
        ({"features": []}, "features: the list is empty; leave it out to use all columns"),
        ({"features": ["a", "b", "a"]}, "features: the column 'a' is named twice"),
        ({"drop": ["a", "a"]}, "drop: the column 'a' is named twice"),
        ({"drop": "y"}, "target: 'y' is the column to predict, so it cannot be under `drop` too"),
        ({"features": "w", "weight": "w"}, "features: 'w' is also under `weight`, and such a column is not predicted"),
        ({"features": ["a", "g"], "split": {"group": "g"}}, "features: 'g' is also under `split.group`"),
        ({"encoding": "idna"}, "encoding: 'idna' is not an encoding of files; try utf-8"),
        ({"encoding": "utf\0"}, "is not an encoding that Python knows"),
        ({"prepare": "../../etc"}, "prepare: '../../etc' is neither package.module:function nor file.py:function"),
        ({"metric": "./m:f"}, "metric: './m:f' is neither package.module:function nor file.py:function"),
        ({"models": ["a b:c"]}, "models: entry 1: 'a b:c' is neither package.module:function nor file.py:function"),
        ({"csv": {"skiprows": 1e28}}, "csv.skiprows: must be a whole number (got 1e+28)"),
        ({"csv": {"skiprows": 10**7}}, "csv.skiprows: must be at most 1,000,000 (got 10000000)"),
        ({"csv": {"quotechar": ","}}, "csv: sep and quotechar are both ','; no file could be read like that"),
        ({"slots": 10**20}, "slots: must be at most 100,000"),
        ({"resources": {"cpus": 1e-9}}, "resources.cpus: must be at least 0.01 (got 1e-09)"),
        ({"resources": {"gpus": 1.5}}, "resources.gpus: 1.5 is neither a whole number nor a share of one GPU"),
        ({"limits": {"study_seconds": math.inf}}, "limits.study_seconds: must be a finite number (got inf)"),
        ({"time_budget": "soon"}, "time_budget: 'soon' is no time; one such as 30s, 15m, 2h, 1h30m, 1d, or seconds,"),
        ({"time_budget": "0m"}, "time_budget: must be above 0"),
        ({"metric": max}, "and give 'metric.py:max'"),
        ({"split": {"cv": 5}}, "split.cv: unknown key. Here it is `folds`: Number of cross-validation folds"),
        ({"n_trials": 9}, "n_trials: unknown key. Here it is `trials`: Number of trials per study"),
        ({"time_limit": 9}, "time_limit: unknown key. Here it is `time_budget`: Wall time of the whole run"),
        ({"label": "y"}, "label: unknown key. Here it is `target`: Column to predict."),
        ({"algorithm": {"name": "grid", "levels": 10**20}}, "algorithm: levels: 100000000000000000000 must be at most"),
        ({"algorithm": {"name": "optuna", "n_startup_trials": 10**20}}, "must be at most 1,000,000"),
        ({"algorithm": {"name": "optuna", 1: 2}}, "algorithm: 1: optuna has no option '1'"),
        ({"scheduler": {"name": "asha", 1: 2}}, "unknown option 1; valid: brackets"),
        (
            {"scheduler": {"name": "asha", "reduction_factor": 1.0000001}},
            "reduction_factor = 1.0000001: must be at least",
        ),
        ({"scheduler": {"name": "asha", "reduction_factor": 1e308}}, "reduction_factor = 1e+308: must be at most 1000"),
        ({"scheduler": {"name": "pbt", "perturbation_factors": [1.2]}}, "needs one below 1 and one above 1"),
        ({"compare": {"seeds": 3}}, "compare.algorithms: is missing"),
        ({"compare": {"algorithms": None}}, "compare.algorithms: The algorithms None are not a list"),
        ({"compare": {"algorithms": ["random"] * 101}}, "A comparison of 101 algorithms is too much; name 100 at most"),
        ({"compare": {"algorithms": [{"name": "random", "label": [1]}, "optuna"]}}, "the label [1], which is not text"),
        ({"models": [{"estimator": "a:b", "name": None}]}, "models: entry 1: name: None is not text."),
        ({"compare": {"algorithms": [1]}}, "compare.algorithms: The algorithms [1] cannot be read: 1 is neither"),
        ({"resources": 2}, "resources: must be a mapping (got 2). Its keys: cpus, custom, gpus, memory_gb"),
        ({"compare": {"algorithms": BOTH, "seds": 3}}, "compare.seds: unknown key. Did you mean 'seeds'?"),
        ({"compare": {"algorithms": BOTH, "baseline": "x"}}, "the baseline 'x' is not among the algorithms"),
    ],
)
def test_the_field_the_rule_and_the_value(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        define({**GIVEN, **fields})
    assert message in str(caught.value)
    assert "Input should" not in str(caught.value)


def test_words_of_yaml_stay_words() -> None:
    text = "data: x\ntarget: y\ncustomers: [no, 141, 007, 12:30]\nclass_weight: {no: 1, yes: 3}\nmlflow: off\n"
    made = define(load_yaml(text))
    assert made.customers == ("no", "141", "007", "12:30")
    assert made.class_weight == {"no": 1, "yes": 3}
    assert not made.mlflow.enabled


@pytest.mark.parametrize(
    ("text", "said"), [("", "is empty"), ("churn", "holds 'churn'"), ("- a\n- b", "holds ['a', 'b']")]
)
def test_a_file_without_keys_is_named_as_what_it_is(text: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(f"week.yaml {said}; keys and values are expected")):
        load_yaml(text, "week.yaml")
