"""What a program may give for a definition, and what an editor or notebook shows of it."""

from __future__ import annotations

import inspect
from importlib.metadata import version

import pandas as pd
import pytest

import tuning
from tuning import TuneRunner
from tuning.compare.on_data import comparing
from tuning.definition.definition import Definition
from tuning.errors import DefinitionError

FRAME = pd.DataFrame({"a": range(20), "y": range(20)})
KEYS = {"data": FRAME, "target": "y", "task": "regression"}
ASKED = {"algorithms": "random,optuna"}


def test_a_mapping_of_keys_is_a_definition() -> None:
    assert TuneRunner({**KEYS, "trials": 3}, trials=4).definition.trials == 4


def test_loggers_are_one_or_several_and_each_counts_once() -> None:
    assert TuneRunner(KEYS, loggers="csv").definition.loggers == ("csv",)
    assert TuneRunner(KEYS, loggers=["json", "csv", "json"]).definition.loggers == ("json", "csv")
    with pytest.raises(DefinitionError, match=r"loggers\.0: must be 'tensorboard', 'csv' or 'json' \(got \[\]\)"):
        TuneRunner(KEYS, loggers=[[]])


@pytest.mark.parametrize("given", [FRAME, 3, ["a.csv"]], ids=lambda given: type(given).__name__)
def test_what_is_no_definition_is_refused_with_the_way_out(given: object) -> None:
    said = rf"a {type(given).__name__} is not a definition\. Give its keys by name, such as data=frame"
    with pytest.raises(DefinitionError, match=said):
        TuneRunner(given)
    with pytest.raises(DefinitionError, match=said):
        comparing(given, ASKED, None, {})


def test_a_comparison_takes_a_mapping_or_a_runner() -> None:
    for given in (KEYS, TuneRunner(**KEYS), TuneRunner(**KEYS).definition):
        made = comparing(given, ASKED, 5, {})
        assert (made.trials, made.target, made.compare is not None) == (5, "y", True)


def test_an_editor_offers_every_key_and_the_public_names() -> None:
    assert set(Definition.model_fields) < set(inspect.signature(TuneRunner).parameters)
    assert {"RunResult", "TuneRunner"} <= set(dir(tuning))
    assert not {"annotations", "Any", "TYPE_CHECKING", "driver", "runs"} & set(dir(tuning))


def test_the_package_says_its_version() -> None:
    assert tuning.__version__ == version("tuning-service")
    assert "__version__" in dir(tuning)


def test_a_runner_and_a_plan_say_what_they_are() -> None:
    shown = repr(TuneRunner(**KEYS, storage="s3://key:secret@bucket/runs"))
    assert shown.startswith("TuneRunner(data=<DataFrame of 20 rows>, target='y'")
    assert "secret" not in shown
    assert repr(TuneRunner(**KEYS, search_space="ridge").plan()).startswith("plan        search\ncustomers   1\n")


def test_help_says_what_every_key_is_for() -> None:
    said = inspect.getdoc(TuneRunner)
    assert said is not None
    for name, field in Definition.model_fields.items():
        assert f"{name}: {' '.join(str(field.description).split())}" in said
    assert "trials=20" in str(inspect.signature(TuneRunner))
