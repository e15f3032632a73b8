"""A definition as plain values: what stands in a run's files, and by which two definitions are the same.

The fingerprints were taken before the fields had types; they may not change, since runs that exist have them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tuning.definition.definition import define

GIVEN: dict[str, Any] = {"data": "x", "target": "y"}
ALWAYS: dict[str, Any] = {
    **GIVEN,
    "algorithm": {"name": "optuna"},
    "scheduler": {"name": "asha", "grace_period": 1, "reduction_factor": 3.0, "brackets": 1},
}
CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "aef7675c9d65c7df"),
    ({"split": "random"}, {"split": {"type": "random"}}, "db83ac747f2f450d"),
    ({"mlflow": "off"}, {"mlflow": {"enabled": False}}, "28271e85de0be736"),
    ({"models": ["ridge", "lasso"]}, {"models": ["ridge", "lasso"]}, "1c2335e6e7578ad1"),
    (
        {"models": {"a": "sklearn.linear_model:Ridge"}},
        {
            "models": [{"name": "a", "estimator": "sklearn.linear_model:Ridge"}],
            "algorithm": {"name": "grid"},
            "trials": 1,
        },
        "8900884a8ac8f91c",
    ),
    ({"stop": {"target": 0.95}}, {"stop": {"target": {"score": 0.95}}}, "2eaaf5155df951a4"),
    ({"stop": {"target": {"score": 0.95}}}, {"stop": {"target": {"score": 0.95}}}, "2eaaf5155df951a4"),
    (
        {"search_space": {"parameters": {"a": {"type": "float", "low": 0, "high": 1}}}},
        {
            "search_space": {
                "parameters": [{"name": "a", "type": "float", "low": 0.0, "high": 1.0, "default": 0.5}],
            }
        },
        "558c5a5a29903847",
    ),
    (
        {"warm_start": [{"config": {"a": 1}, "score": 0.5, "customer": "c"}]},
        {"warm_start": [{"config": {"a": 1}, "score": 0.5, "customer": "c"}]},
        "97427a4ecb88a9f5",
    ),
    ({"class_weight": {"no": 1, "yes": 3}}, {"class_weight": {"no": 1, "yes": 3}}, "4b8cffd436b40c4e"),
    ({"customers": ["a", 141, 2.0]}, {"customers": ["a", "141", "2"]}, "8f6c987ce9c1f09b"),
    (
        {"data": {"acme": "a.csv", "b": {"path": "b.csv", "trials": 3}}},
        {"data": {"acme": "a.csv", "b": {"path": "b.csv", "trials": 3}}},
        "ae750945e323fd17",
    ),
    ({"limits": {"trial_seconds": 3}}, {"limits": {"trial_seconds": 3.0}}, "82cf62e59161289b"),
]


@pytest.mark.parametrize(("given", "differs", "fingerprint"), CASES)
def test_plain_values_and_fingerprint(given: dict[str, Any], differs: dict[str, Any], fingerprint: str) -> None:
    made = define({**GIVEN, **given})
    assert made.to_dict() == {**ALWAYS, **differs}
    assert made.fingerprint() == fingerprint
    assert define(made.to_dict()).to_dict() == made.to_dict()


@pytest.mark.parametrize("given", [case[0] for case in CASES])
def test_checked_values_are_taken_again(given: dict[str, Any]) -> None:
    """A definition is extended by giving its own values once more, next to new ones."""
    made = define({**GIVEN, **given})
    again = define({name: getattr(made, name) for name in made.model_fields_set})
    assert again.to_dict() == made.to_dict()


def test_a_wrong_model_is_told_beside_all_else_that_is_wrong() -> None:
    from tuning.errors import DefinitionError

    with pytest.raises(DefinitionError) as caught:
        define({**GIVEN, "models": ["ridg"], "trials": 0, "data": {"acme": {"path": "x", "trials": 0}}})
    told = str(caught.value).splitlines()
    assert told[0] == "data: customer 'acme': trials: must be at least 1 (got 0)"
    assert told[1].startswith("models: entry 1: 'ridg' is not a model family.")
    assert told[2] == "trials: must be at least 1 (got 0)"


def test_fields_have_types_and_descriptions() -> None:
    """No field is `Any`, and each says what it is."""
    from tuning.definition.definition import Definition
    from tuning.definition.options import Options

    kinds = [Options, *Options.__subclasses__()]
    assert Definition in kinds
    for kind in kinds:
        for name, field in kind.model_fields.items():
            assert field.annotation is not Any, f"{kind.__name__}.{name}"
            assert (field.description or "").endswith("."), f"{kind.__name__}.{name}"
            assert f"    {name}: " in (kind.__doc__ or ""), "help() shows it"
