"""The JSON Schema that editors check definitions with says yes and no where the program does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

import schedulers
from schedulers import stopping
from search_spaces import algorithms, json_schema, presets
from tuning.cli.program import main
from tuning.definition.definition import Definition, define
from tuning.definition.json_schema import definition_schema
from tuning.definition.yaml_file import load_yaml
from tuning.errors import DefinitionError

GIVEN = "data: x\ntarget: y\n"
VALIDATOR = Draft202012Validator(definition_schema())

FORMS = [
    "",
    "by: zone",
    "by: [zone, day]",
    "customers: [no, 141, 007, 12:30]",
    "customers: acme",
    "customers: [141]",
    "features: a\ndrop: [b]",
    "data: [a.csv, b.csv]",
    "data: {acme: a.csv, beta: {path: b.csv, trials: 3, resources: {cpus: 2}, search_space: ridge}}",
    "class_weight: balanced",
    "class_weight: {no: 1, yes: 3}",
    "loggers: tensorboard",
    "loggers: [csv, json]",
    "resources: {cpus: 0.5, gpus: 2, memory_gb: 1.5, custom: {fast_disk: 1}}",
    "csv: {sep: ';', na_values: ['-']}",
    "split: stratified",
    "split: {type: time, column: day}",
    "split: {folds: 5, test: 0.1}",
    "mlflow: off",
    "mlflow: false",
    "mlflow: {tracking_uri: 'sqlite:///a.db', record_trials: 'top:3'}",
    "models: ridge",
    "models: [ridge, {estimator: 'sklearn.linear_model:Ridge', name: mine, params: {alpha: 2}}]",
    "models: {mine: 'my_models.py:make', other: {estimator: 'a:b', input: frame}}",
    "models: {estimator: 'a:b', search_space: {C: {type: float, low: 1, high: 2}}}",
    "algorithm: {name: optuna, sampler: gp, n_startup_trials: 5}",
    "algorithm: {name: grid, levels: {C: 3}}",
    "scheduler: {name: asha, reduction_factor: 4}",
    "stop: {target: 0.95, study_plateau: 20, study_time: 600, trial_plateau: {steps: 5, min_delta: 0.001}}",
    "search_space: boosting",
    "search_space: {C: {type: float, low: 1e-4, high: 1e3, log: true}}",
    "search_space: {parameters: [{name: C, type: int, low: 1, high: 3}], constraints: 'operator:truth'}",
    "warm_start: [{config: {a: 1, b: x}, score: 0.5, customer: acme}]",
    "portfolio: none",
    "portfolio: runs/week-46",
    "portfolio: [{model: ridge, alpha: 2.0}]",
    "compare: {algorithms: [random, optuna+asha, {algorithm: optuna, label: mine}], seeds: 3, baseline: random}",
    "compare: {algorithms: 'random, optuna'}",
    "limits: {trial_seconds: 600, memory_gb: 4}\nslots: 4\nresources: {cpus: 2, memory_gb: 4}",
    "metric: null\nsave_models: false\nplacement: spread",
]
MISTAKES = [
    "trails: 3",
    "trials: many",
    "trials: 0",
    "by: {a: 1}",
    "mlflow: yes",
    "data: {acme: {path: a.csv, trails: 3}}",
    "class_weight: even",
    "csv: {decimal: ',,'}",
    "split: {fold: 3}",
    "split: weekly",
    "models: [ridg]",
    "algorithm: {name: optuna, samplr: gp}",
    "algorithm: {name: optuna, n_startup_trials: 0}",
    "scheduler: ash",
    "stop: {study_plateau: {trals: 3}}",
    "search_space: {C: {type: flot, low: 1, high: 2}}",
    "portfolio: []",
    "compare: {algorithms: [random]}",
    "compare: {algorithms: [random, optuna], seds: 3}",
    "limits: {trial_second: 3}",
    "resources: {cpus: 0}",
    "objective: 3",
]


def values_of(text: str) -> dict[str, Any]:
    """The given keys over the two that every definition needs."""
    return {**load_yaml(GIVEN), **(load_yaml(text) if text else {})}


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(definition_schema())
    assert set(definition_schema()["properties"]) == set(Definition.model_fields)


@pytest.mark.parametrize("text", FORMS)
def test_every_form_that_is_read_is_accepted(text: str) -> None:
    define(values_of(text))
    assert [error.message for error in VALIDATOR.iter_errors(values_of(text))] == []


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_refused_is_marked(text: str) -> None:
    with pytest.raises(DefinitionError):
        define(values_of(text))
    assert not VALIDATOR.is_valid(values_of(text))


def test_names_come_from_the_registries() -> None:
    for key, names in (("algorithm", algorithms.names()), ("scheduler", schedulers.names())):
        for name in names:
            assert VALIDATOR.is_valid(values_of(f"{key}: {name}"))
            assert VALIDATOR.is_valid(values_of(f"{key}: {{name: {name}}}"))
    for name in presets.names():
        assert VALIDATOR.is_valid(values_of(f"search_space: {name}"))
    assert set(definition_schema()["properties"]["stop"]["anyOf"][0]["properties"]) == set(stopping.names())


def test_a_definition_needs_a_target_or_an_objective() -> None:
    assert not VALIDATOR.is_valid({"data": "x"})
    assert VALIDATOR.is_valid(
        {"objective": "my_code:loss", "search_space": {"x": {"type": "float", "low": 0, "high": 1}}}
    )


def test_the_command_prints_both_schemas() -> None:
    printed = CliRunner().invoke(main, ["schema"])
    assert json.loads(printed.stdout) == definition_schema()
    assert json.loads(CliRunner().invoke(main, ["schema", "--space"]).stdout) == json_schema()
