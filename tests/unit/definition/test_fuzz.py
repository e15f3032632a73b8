"""Whatever stands in a definition, it is accepted or refused with the field and a sentence: no traceback, no hang.

The values come from the definition's own JSON Schema, with something odd in the place of any part of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedulers import SchedulerError
from search_spaces import SpaceError
from tuning.definition.definition import Definition, define
from tuning.definition.json_schema import definition_schema
from tuning.errors import DefinitionError, TuningError
from tuning.planning.plan import make_plan

SCHEMA = definition_schema()
Strategy = st.SearchStrategy[Any]
NUMBERS = st.sampled_from([0, 1, -1, 2, 3, 0.5, 1e-9, -0.0, 1e28, 1e308, 10**20, 10**400, float("inf"), float("nan")])
TEXTS = st.sampled_from(["", " ", "a", "y", "a:b", "x.py:f", "../../etc", "./m:f", "..a:b", "\0", "é", "#1", "a" * 300])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
ODD = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.integers(0, 2), inner, max_size=3),
    max_leaves=4,
)


def of(schema: dict[str, Any]) -> Strategy:
    """Values that a part of the schema describes, or something odd in their place."""
    return st.one_of(_plain(schema), _plain(schema), ODD)


def _plain(schema: dict[str, Any]) -> Strategy:
    if "$ref" in schema:
        return _part(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())[:1]]
    if options and "properties" not in schema:
        return st.one_of(*map(_plain, options))
    kinds = schema.get("type", "string" if "properties" not in schema else "object")
    return st.one_of(*(_of_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)))


def _of_type(kind: str, schema: dict[str, Any]) -> Strategy:
    if kind == "object":
        known = {name: of(inner) for name, inner in schema.get("properties", {}).items()}
        needed = {name: known.pop(name) for name in schema.get("required", ()) if name in known}
        more = schema.get("additionalProperties", True)
        others = st.dictionaries(TEXTS, of(more if isinstance(more, dict) else {}), max_size=2 if more else 0)
        fixed = st.fixed_dictionaries(needed, optional=dict(known))
        return st.tuples(others, fixed).map(lambda both: {**both[0], **both[1]})
    if kind == "array":
        return st.lists(of(schema.get("items", {})), max_size=3)
    return {"null": st.none(), "boolean": st.booleans(), "string": TEXTS}.get(kind, NUMBERS)


@cache
def _part(name: str) -> Strategy:
    return st.deferred(lambda: _plain(SCHEMA["$defs"][name]))


@cache
def _field(name: str) -> Strategy:
    return st.tuples(st.just(name), of(SCHEMA["properties"][name]))


FIELDS = st.sampled_from(sorted(SCHEMA["properties"])).flatmap(_field)
DEFINITIONS = st.lists(FIELDS, min_size=1, max_size=3).map(dict)
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 3)), columns=["a", "b", "y"])
GIVEN = {"data": {"one": FRAME}, "target": "y", "task": "regression", "search_space": "ridge", "slots": 1}
SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.long
@settings(SETTINGS, max_examples=300)
@given(values=DEFINITIONS)
def test_any_definition_is_accepted_or_refused_with_its_field(values: dict[str, Any]) -> None:
    said = ""
    try:
        define({"data": "x", "target": "y", **values}).fingerprint()
    except DefinitionError as error:
        said = str(error)
    assert not said or any(name in said for name in Definition.model_fields), said
    assert "Input should" not in said
    assert len(said) < 5000


@pytest.mark.long
@settings(SETTINGS, max_examples=100)
@given(values=DEFINITIONS)
def test_any_definition_is_planned_or_refused(values: dict[str, Any]) -> None:
    """Over data that is there."""
    try:
        said = make_plan(define({**GIVEN, **values})).describe()
    except (TuningError, SpaceError, SchedulerError) as error:
        said = str(error)
    assert said.strip()
