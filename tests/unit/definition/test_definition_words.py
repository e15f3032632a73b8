"""What is said of a wrong value in a definition: the field, the rule and the value, in words of ours."""

from __future__ import annotations

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
        ({"trials": 0}, "trials: must be at least 1 (got 0)"),
        ({"by": {"a": 1}}, "by: must be a list"),
        ({"customers": [True]}, "customers.0: must be text (got True)"),
        ({"winner": "luck"}, "winner: must be 'best' or 'one_standard_error' (got 'luck')"),
        ({"save_models": "maybe"}, "save_models: must be true or false (got 'maybe')"),
        ({"split": {"test": 1.5}}, "split.test: must be below 1 (got 1.5)"),
        ({"limits": {"trial_seconds": "x"}}, "limits.trial_seconds: must be a number (got 'x')"),
        (
            {"mlflow": {"record_trials": "top3"}},
            "mlflow.record_trials: 'top3' must be all, none or top:K with a whole number K, such as top:5",
        ),
        ({"mlflow": "perhaps"}, "mlflow: must be a mapping (got 'perhaps')"),
        ({"algorithm": "bayes"}, "algorithm: there is no algorithm 'bayes' (did you mean 'bayesopt'?)"),
        ({"algorithm": {"name": "optuna", "group": "x"}}, "algorithm: group: 'x' must be true or false"),
        ({"algorithm": {"name": "grid", "levels": {"C": 0}}}, "algorithm: levels.C: 0 must be at least 1"),
        ({"scheduler": {"name": "asha", "grace_period": 0}}, "grace_period = 0: must be at least 1"),
        ({"compare": {"seeds": 3}}, "compare.algorithms: is missing"),
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
