"""The studies that the run of a refresh is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias, cast

from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.planning.plan_notes import OFF
from tuning.planning.studies import Known, asks_pool
from tuning.records.ownership import begun_term
from tuning.records.parts import TRIALS, accepted, read_table
from tuning.records.schema import Config, TrialRecord
from tuning.records.tables import records_of
from tuning.runs.plan_file import plain
from tuning.runs.resume import MAY_CHANGE
from tuning.serving.champion import OWN, Champion
from tuning.serving.plan import RefreshPlan
from tuning.serving.releases import Releases
from tuning.study.warm_start import best_entries, known_entries

#: The names of a customer's studies in the run of a refresh: what serves, a search, and what serves on the rows of that
#: search, so that its hold-out compares both.
CHAMPION, SEARCH, SCORED = "champion", "search", "scored"
BEST = 2  # trials of the last search that a search tries first
Studies: TypeAlias = Mapping[str, Mapping[str, Known]]


def refresh_studies(plan: RefreshPlan, releases: Releases) -> Studies:
    """Return what a refresh fits and searches for, by customer and name of the study; with a pool, those whose rows it
    takes have none."""
    studies, champions = dict[str, dict[str, Known]](), plan.champions
    fixed = {
        name: FixedConfiguration.from_json(champions[name].configuration or "")
        for name in {*plan.fitted, *plan.searched}
        if name in champions and champions[name].configuration is not None
    }
    for name in plan.fitted:
        studies[name] = {CHAMPION: fixed[name]}
    first = first_tries(releases, champions, plan.searched)
    for name in plan.searched:
        (of_customer := studies.setdefault(name, {}))[SEARCH] = first.get(name, ())
        if name in fixed and champions[name].answer == OWN:
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


def first_tries(releases: Releases, champions: Mapping[str, Champion], names: Sequence[str]) -> dict[str, list[Config]]:
    """Return what each customer's search tries first: the configuration that serves, which so is not lost, and the
    best two of its last search; each once, in an order that a repeat has, too."""
    known = {name: champions[name] for name in sorted(names) if name in champions}
    entries = known_entries(
        {
            name: FixedConfiguration.from_json(each.configuration)
            for name, each in known.items()
            if each.answer == OWN and each.configuration is not None
        }
    )
    searches: dict[int, list[str]] = {}
    for name, each in known.items():
        if each.searched is not None:
            searches.setdefault(each.searched, []).append(name)
    for number, customers in searches.items():
        with suppress(RunError):  # pruned, or moved away
            if (run := releases.at(number).run) is not None:
                directory = releases.run_directory(run)
                parts = accepted(directory, begun_term(directory))
                trials = records_of(read_table(directory, parts, TRIALS, customers=customers), TrialRecord)
                entries += best_entries(trials, BEST)
    found: dict[str, list[Config]] = {name: [] for name in known}
    for entry in entries:
        tries, config = found[str(entry["customer"])], cast("Config", entry["config"])
        if config not in tries:
            tries.append(config)
    return found


def _plain(value: object) -> object:
    return value.to_json() if isinstance(value, FixedConfiguration) else str(value)
