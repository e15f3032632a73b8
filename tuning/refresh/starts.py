"""What a customer's search tries first: its champion's configuration, which so is not lost, and its last two best."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import cast

from tuning.champions.champion import OWN, Champion
from tuning.champions.releases import Releases
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.records.ownership import begun_term
from tuning.records.parts import TRIALS, accepted, read_table
from tuning.records.schema import Config, TrialRecord
from tuning.records.tables import records_of
from tuning.study.warm_start import best_entries, known_entries

BEST = 2  # of the last search


def first_tries(
    releases: Releases, champions: Mapping[str, Champion], names: Collection[str]
) -> dict[str, list[Config]]:
    """By customer, of those that have a champion; each configuration once, in an order that a repeat has, too."""
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
