"""Every place where a definition reaches outside is listed, before anything of it is checked, opened or imported."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from pydantic import BaseModel, Field

from schedulers.registry import specs
from schedulers.stopping.registry import rules
from search_spaces.algorithms import registry
from tuning.definition.compared_methods import CompareOptions
from tuning.definition.customer_limits import Limits
from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions, Options
from tuning.definition.reach import PATH, Reference, reach_of
from tuning.models.base import EncodedRows
from tuning.models.families import catboost, xgboost
from tuning.models.registry import families
from tuning.preprocessing.task import REGRESSION, Task
from tuning.storage.data_roots import VARIABLE

#: The keys that reach outside; all others name nothing.
OUTSIDE = {
    "Definition.data": "path",
    "Definition.manifest": "path",
    "Definition.prepare": "code",
    "Definition.metric": "code",
    "Definition.models": "code",
    "Definition.allow_code": "code",
    "Definition.search_space": "code",
    "Definition.portfolio": "path",
    "Definition.objective": "code",
    "Definition.storage": "path",
    "CustomerOptions.path": "path",
    "CustomerOptions.search_space": "code",
    "MLflowOptions.tracking_uri": "uri",
}


def found(values: dict[str, object]) -> list[tuple[str, str, str]]:
    return [(each.key, each.kind, each.text) for each in Definition.references(values)]


def test_all_keys_are_classed_and_these_reach_outside() -> None:
    assert CompareOptions in Options.__subclasses__()
    kinds = {
        f"{kind.__name__}.{name}": reach.kind
        for kind in Options.__subclasses__()
        if kind.__module__.startswith("tuning.")
        for name, field in kind.model_fields.items()
        if (reach := reach_of(name, field)) is not None
    }
    assert {name: kind for name, kind in kinds.items() if kind != "plain"} == OUTSIDE


@pytest.mark.parametrize("text", [str, "str | None", "tuple[str, ...]", "dict[str, float]", "str | int"])
def test_a_key_that_may_be_any_text_has_to_be_classed(text: object) -> None:
    with pytest.raises(TypeError, match=r"folder: its values may be any text. Say with a Reach"):
        type("Unclassed", (Limits,), {"__annotations__": {"folder": text}, "__module__": "elsewhere"})
    classed = type("Classed", (Limits,), {"__annotations__": {"folder": Annotated[str, PATH]}, "__module__": "there"})
    assert [each.text for each in classed.references({"folder": "/x"})] == ["/x"]


@pytest.mark.parametrize("kind", [*registry().values(), *specs().values(), *rules().values()])
def test_options_of_algorithms_schedulers_and_rules_name_nothing(kind: type[BaseModel]) -> None:
    """Their packages know no Reach, so their options are no free texts, but the names of parameters in a mapping."""
    for name, field in kind.model_fields.items():
        if name not in ("name", "levels"):
            assert reach_of(name, field) is None


def test_the_levels_of_a_grid_are_named_by_parameters() -> None:
    assert [name for name, kind in registry().items() if "levels" in kind.model_fields] == ["grid"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"data": "a/*.csv"}, [("data", "path", "a/*.csv")]),
        ({"data": ["a.csv", "s3://b/c.csv"]}, [("data", "path", "a.csv"), ("data", "uri", "s3://b/c.csv")]),
        ({"data": {"acme": "a.csv"}}, [("data.acme", "path", "a.csv")]),
        (
            {"data": {"a.b": {"path": "a.csv", "search_space": {"parameters": {}, "constraints": "os:getcwd"}}}},
            [("data.a.b.path", "path", "a.csv"), ("data.a.b.search_space.constraints", "code", "os:getcwd")],
        ),
        ({"manifest": "/m.yaml", "storage": "gs://b"}, [("manifest", "path", "/m.yaml"), ("storage", "uri", "gs://b")]),
        (
            {"prepare": "mine.py:prepare", "objective": "a.b:train", "metric": "m:score"},
            [("prepare", "code", "mine.py:prepare"), ("metric", "code", "m:score"), ("objective", "code", "a.b:train")],
        ),
        ({"metric": "roc_auc", "models": ["ridge", "knn"], "portfolio": "shipped", "search_space": "ridge"}, []),
        ({"portfolio": "runs/old"}, [("portfolio", "path", "runs/old")]),
        ({"portfolio": [{"model": "a:b"}], "warm_start": [{"config": {"x": "/etc/passwd"}}]}, []),
        (
            {"models": ["ridge", "sklearn.svm:SVC", {"estimator": "mine.py:make"}]},
            [("models", "code", "sklearn.svm:SVC"), ("models.estimator", "code", "mine.py:make")],
        ),
        (
            {"models": {"mine": "a:B", "other": {"estimator": "c:D", "search_space": {"constraints": ["e:f", "g:h"]}}}},
            [
                ("models.mine", "code", "a:B"),
                ("models.other.estimator", "code", "c:D"),
                ("models.other.search_space.constraints", "code", "e:f"),
                ("models.other.search_space.constraints", "code", "g:h"),
            ],
        ),
        (
            {"models": [{"estimator": {"file": "estimators/x.pkl", "sha256": "0"}}]},
            [("models.estimator", "code", "estimators/x.pkl")],
        ),
        ({"mlflow": {"tracking_uri": "mlflow.db"}}, [("mlflow.tracking_uri", "uri", "mlflow.db")]),
        ({"mlflow": "off", "split": "time", "compare": {"algorithms": "random,optuna"}, "unknown": "x:y"}, []),
        ({"allow_code": "yes"}, [("allow_code", "code", "yes")]),
        ({"allow_code": False, "data": None}, []),
    ],
    ids=str,
)
def test_what_a_definition_names_is_listed_as_it_stands_there(
    values: dict[str, object], expected: list[tuple[str, str, str]]
) -> None:
    assert found(values) == expected
    assert found(json.loads(json.dumps(values))) == expected


def test_nothing_is_imported_or_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "explodes.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    constraint = {"parameters": {"x": [1, 2]}, "constraints": "explodes:f"}
    values = {"search_space": constraint, "data": str(tmp_path / "none"), "prepare": "explodes:f"}
    assert {each.kind for each in Definition.references(values)} == {"code", "path"}
    assert "explodes" not in sys.modules


def test_a_definition_that_was_read_says_the_same(tmp_path: Path) -> None:
    values = {"data": {"acme": "a.csv"}, "target": "y", "models": ["ridge", "sklearn.svm:SVR"], "storage": "/runs"}
    of_text, of_values = found(values), found(Definition(**values).to_dict())
    assert [each[1:] for each in of_values] == [each[1:] for each in of_text]


def test_options_inside_options_are_asked() -> None:
    class Inner(Limits):
        file: Annotated[str, PATH] = Field("")

    class Outer(Limits):
        one: Inner | None = None
        many: tuple[Inner, ...] = ()

    values = {"one": {"file": "a"}, "many": [{"file": "b"}, {"file": "c"}]}
    assert [each.key for each in Outer.references(values)] == ["one.file", "many.file", "many.file"]
    assert CustomerOptions.references({"path": "x"}) == [Reference("path", "path", "x")]


def test_parameters_by_which_a_library_opens_files_are_known_by_all_their_names() -> None:
    """A new version of a library, with more of them, has to be looked at."""
    from lightgbm.basic import _ConfigAliases

    aliases = {name: {name, *others} for name, others in _ConfigAliases._get_all_param_aliases().items()}
    suspect = re.compile(
        r"file(name)?s?$|machine|_model$|^config$|^output_|^data$|^valid$|port$|path|folder|_dir$|borders$"
    )
    harmless = {"num_machines", "path_smooth", "allow_writing_files", "use_best_model"}
    for family, names in (
        ("lightgbm", aliases),
        ("catboost", {name: {name} for name in catboost._known()}),
        ("xgboost", {name: {name} for name in xgboost._known()}),
    ):
        opened = {alias for name in names.keys() - harmless if suspect.search(name) for alias in names[name]}
        assert opened <= families()[family].opens <= {alias for each in names.values() for alias in each}
    assert "train_dir" in families()["catboost"].opens


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"search_space": {"model": ["lightgbm"], "forcedsplits_filename": ["/etc/passwd"]}}, "search_space"),
        ({"search_space": {"parameters": {"machines": {"values": ["10.0.0.1:80"]}}}}, "search_space.parameters"),
        ({"models": [{"estimator": "catboost", "search_space": {"train_dir": ["/x"]}}]}, "models.search_space"),
        ({"data": {"acme": {"path": "a.csv", "search_space": {"fs": ["/x"]}}}}, "data.acme.search_space"),
        (
            {"search_space": {"parameters": [{"name": "port", "type": "constant", "value": 1}]}},
            "search_space.parameters",
        ),
        ({"models": [{"estimator": "a:b", "search_space": {"fs": ["/x"]}}]}, "models.search_space"),
        ({"models": {"mine": {"estimator": "a:b", "params": {"fs": "/x"}}}}, "models.mine.params"),
    ],
)
def test_a_parameter_that_names_a_file_is_listed(values: dict[str, object], key: str) -> None:
    assert [each.key.rpartition(".")[0] for each in Definition.references(values) if each.kind == "parameter"] == [key]


def test_numbers_of_own_models_are_their_own_matter() -> None:
    values = {"models": [{"estimator": "ours.models:net", "search_space": {"workers": [1, 2]}, "params": {"port": 1}}]}
    assert [each.kind for each in Definition.references(values)] == ["code"]


def test_where_roots_are_set_a_family_takes_no_such_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = EncodedRows(np.zeros((9, 1)), np.arange(9.0))
    monkeypatch.setenv(VARIABLE, "/data")
    for family, name in (("lightgbm", "fs"), ("catboost", "train_dir")):
        with pytest.raises(TypeError, match=f"'{name}' names a file or an address, which {family} opens by itself"):
            families()[family].fit({name: "/etc/passwd"}, rows, Task(REGRESSION), 0)
