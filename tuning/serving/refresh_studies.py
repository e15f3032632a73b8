"""The studies that the run of a refresh is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, cast

from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.evaluation.fixed import FixedConfiguration
from tuning.planning.plan_notes import OFF
from tuning.planning.studies import Known, asks_pool
from tuning.records.schema import Config
from tuning.runs.plan_file import plain
from tuning.runs.resume import MAY_CHANGE
from tuning.serving.champion import OWN
from tuning.serving.plan import RefreshPlan
from tuning.study.warm_start import known_entries

#: The names of a customer's studies in the run of a refresh: what serves, a search, and what serves on the rows of that
#: search, so that its hold-out compares both.
CHAMPION, SEARCH, SCORED = "champion", "search", "scored"
Studies: TypeAlias = Mapping[str, Mapping[str, Known]]


def refresh_studies(plan: RefreshPlan) -> Studies:
    """Return what a refresh fits and searches for, by customer and name of the study; with a pool, those whose rows it
    takes have none. A search tries the configuration that serves first, so that it is not lost."""
    studies, champions = dict[str, dict[str, Known]](), plan.champions
    fixed = {
        name: FixedConfiguration.from_json(champions[name].configuration or "")
        for name in {*plan.fitted, *plan.searched}
        if name in champions and champions[name].configuration is not None
    }
    for name in plan.fitted:
        studies[name] = {CHAMPION: fixed[name]}
    for name in plan.searched:
        (of_customer := studies.setdefault(name, {}))[SEARCH] = ()
        if name in fixed and champions[name].answer == OWN:
            of_customer[SEARCH] = tuple(cast("Config", each["config"]) for each in known_entries({name: fixed[name]}))
            of_customer[SCORED] = replace(fixed[name], only_scored=True)
    if plan.definition.pool != OFF and any(asks_pool(known) for each in studies.values() for known in each.values()):
        return {name: {} for name in plan.changes.customers.texts("id").to_pylist()} | studies
    return studies


def refresh_definition(definition: Definition, studies: Studies) -> Definition:
    """Return the definition of the run, without a page, which would praise models that do not serve."""
    return definition_of(definition, {"report": False, "customers": tuple(sorted(studies))})


def run_name(plan: RefreshPlan, studies: Studies) -> str:
    """Return the name of the run's folder: the release's number and what is asked for, so that a repeat goes on."""
    same = {key: value for key, value in plain(plan.definition).items() if key not in MAY_CHANGE}
    asked = json.dumps([same, studies], sort_keys=True, default=_plain)
    return f"{plan.number:06d}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def _plain(value: object) -> object:
    return value.to_json() if isinstance(value, FixedConfiguration) else str(value)
