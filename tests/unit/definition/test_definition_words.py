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
        ({"trials": True}, "trials: must be a number (got True)"),
        ({"data": {"acme": {"path": "a.csv", "trials": True}}}, "customer 'acme': trials: must be a number (got True)"),
        ({"stop": {"study_plateau": True}}, "trials = True: must be a number"),
        ({"trials": 0}, "trials: must be at least 1 (got 0)"),
        ({"by": {"a": 1}}, "by: must be a list"),
        ({"winner": "luck"}, "winner: must be 'best' or 'one_standard_error' (got 'luck')"),
        (
            {"ensemble": "greedy", "winner": "one_standard_error"},
            "ensemble: an ensemble is never simpler than its members",
        ),
        ({"save_models": "maybe"}, "save_models: must be true or false (got 'maybe')"),
        ({"split": {"test": 1.5}}, "split.test: must be below 1 (got 1.5)"),
        (
            {"mlflow": {"record_trials": "top3"}},
            "mlflow.record_trials: 'top3' must be auto, all, none or top:K with a whole number K, such as top:5",
        ),
        ({"mlflow": "yes"}, "mlflow: 'yes' is neither true nor false"),
        (
            {"name": "a/b"},
            "name: 'a/b' must begin with a letter or digit and have at most 100 letters (a to z,",
        ),
        ({"storage": ""}, "storage: must not be empty (got '')"),
        ({"algorithm": "bayes"}, "algorithm: there is no algorithm 'bayes' (did you mean 'bayesopt'?)"),
        ({"algorithm": {"name": "optuna", "group": "x"}}, "algorithm: group: 'x' must be true or false"),
        ({"scheduler": {"name": "asha", "grace_period": 0}}, "grace_period = 0: must be at least 1"),
        ({"customers": 3}, "customers: 3 is no list of ids; name the customers, such as [acme, 141]"),
        ({"features": []}, "features: the list is empty; leave it out to use all columns"),
        ({"features": ["a", "b", "a"]}, "features: the column 'a' is named twice"),
        ({"drop": "y"}, "target: 'y' is the column to predict, so it cannot be under `drop` too"),
        ({"features": "w", "weight": "w"}, "features: 'w' is also under `weight`, and such a column is not predicted"),
        ({"encoding": "idna"}, "encoding: 'idna' is not an encoding of files; try utf-8"),
        ({"prepare": "../../etc"}, "prepare: '../../etc' is neither package.module:function nor file.py:function"),
        ({"csv": {"skiprows": 1e28}}, "csv.skiprows: must be a whole number (got 1e+28)"),
        ({"csv": {"quotechar": ","}}, "csv: sep and quotechar are both ','; no file could be read like that"),
        ({"slots": 10**20}, "slots: must be at most 100,000"),
        ({"resources": {"gpus": 1.5}}, "resources.gpus: 1.5 is neither a whole number nor a share of one GPU"),
        ({"limits": {"study_seconds": math.inf}}, "limits.study_seconds: must be a finite number (got inf)"),
        ({"time_budget": "soon"}, "time_budget: 'soon' is no time; one such as 30s, 15m, 2h, 1h30m, 1d, or seconds,"),
        ({"metric": max}, "and give 'metric.py:max'"),
        ({"split": {"cv": 5}}, "split.cv: unknown key. Here it is `folds`: Number of cross-validation folds"),
        ({"time_limit": 9}, "time_limit: unknown key. Here it is `time_budget`: Wall time of the whole run"),
        ({"algorithm": {"name": "grid", "levels": 10**20}}, "algorithm: levels: 100000000000000000000 must be at most"),
        ({"algorithm": {"name": "optuna", 1: 2}}, "algorithm: 1: optuna has no option '1'"),
        ({"scheduler": {"name": "asha", 1: 2}}, "unknown option 1; valid: brackets"),
        ({"scheduler": {"name": "pbt", "perturbation_factors": [1.2]}}, "needs one below 1 and one above 1"),
        ({"compare": {"seeds": 3}}, "compare.algorithms: is missing"),
        ({"compare": {"algorithms": ["random"] * 101}}, "A comparison of 101 algorithms is too much; name 100 at most"),
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
