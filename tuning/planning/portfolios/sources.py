"""Where a definition's portfolio comes from: shipped with the program, a file, an earlier run, or the definition."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from search_spaces import SearchSpace, SpaceError
from search_spaces.yaml_text import parse_yaml
from tuning.basics.wording import amount, did_you_mean, shorten
from tuning.data.file_access import content_of
from tuning.definition.definition import Definition
from tuning.definition.fields import NO_PORTFOLIO, SHIPPED
from tuning.errors import DataError, PlanError, StorageError
from tuning.models.registry import family
from tuning.notes import Note, PlanCode
from tuning.planning.portfolios.learning import Cell, LossTable, learn
from tuning.records.ownership import newest_term
from tuning.records.parts import accepted, read_trials
from tuning.records.schema import FINISHED, TrialRecord, canonical
from tuning.storage.data_roots import DataRoots
from tuning.storage.names import is_uri, mask
from tuning.storage.run_directory import RunDirectory
from tuning.study.interfaces import Configuration
from tuning.study.warm_start import fitting

SIZE = 12  # the default 20 trials leave eight for the searcher
FORM = "a list of configurations, or a mapping with the list under `configurations`"

Configurations = tuple[Configuration, ...]


def find_portfolio(definition: Definition, task: str | None) -> Configurations:
    """Return the configurations that every study of a definition tries first, as far as its search space has them.

    In a comparison there is none unless the definition asks for it, because searchers are compared.

    Raises:
        PlanError: a file or a run that cannot be read, or gives no configuration.
    """
    source = definition.portfolio
    if not isinstance(source, str):
        return tuple(dict(config) for config in source)
    if source == NO_PORTFOLIO or ("portfolio" not in definition.model_fields_set and definition.compare is not None):
        return ()
    if source == SHIPPED:
        return () if task is None else shipped(task)
    return _read(source)


@cache
def shipped(task: str) -> Configurations:
    """Return the portfolio that comes with the program, of the families that are installed.

    task: "regression", "binary" or "multiclass". Its file holds more configurations than are taken, because optional
    families may be missing.
    """
    file = Path(__file__).with_name(f"{task}.yaml")
    found = _of_file(str(file), file.read_bytes())
    return tuple(config for config in found if not family(str(config["model"])).missing())[:SIZE]


def learned(records: Sequence[TrialRecord], size: int = SIZE) -> Configurations:
    """Return a portfolio from the finished trials of several customers."""
    return tuple(json.loads(name) for name in learn(list(_tables(records).values()), size))


def _tables(records: Sequence[TrialRecord]) -> dict[str, LossTable]:
    """Return the finished trials of each customer as a table of its configurations."""
    tables: dict[str, dict[str, Cell]] = {}
    for record in records:
        if record.state != FINISHED or not math.isfinite(record.loss):
            continue
        cell = Cell(record.loss, record.fit_seconds)
        table = tables.setdefault(record.customer, {})
        name = canonical(record.config)
        table[name] = min(cell, table.get(name, cell))
    return dict(tables)


def check_portfolio(definition: Definition, portfolio: Configurations, space: SearchSpace) -> list[Note]:
    """Return a note on configurations outside the run's search space; `PlanError` where the user's own all are."""
    if definition.portfolio == SHIPPED or not portfolio:
        return []
    left = fitting(portfolio, space)
    if len(left) == len(portfolio):
        return []
    config = next(config for config in portfolio if not fitting([config], space))
    try:
        space.complete(config)
    except SpaceError as error:
        example, why = shorten(json.dumps(config), 80), str(error).rstrip(".")
    if not left:
        raise PlanError(
            f"portfolio: none of its {amount(len(portfolio), 'configuration')} is in the search space, such as "
            f"{example}: {why}. Choose another one, or portfolio: shipped or none."
        )
    lost = len(portfolio) - len(left)
    return [PlanCode.PORTFOLIO_LEFT_OUT(left_out=lost, configurations=len(portfolio), example=example, why=why)]


def _read(where: str) -> Configurations:
    try:
        roots = DataRoots.of_process()
        roots.check(where)
        path = Path(where).expanduser()
        if not is_uri(where) and path.is_file():
            return _of_file(where, content_of(where))
        directory = RunDirectory(where, roots=roots)
        term = newest_term(directory)
        records = [] if term is None else read_trials(directory, accepted(directory, term))
    except DataError as error:
        raise PlanError(f"portfolio: {error}") from error
    except (OSError, ValueError, StorageError) as error:
        raise PlanError(f"portfolio: the run {mask(where)!r} cannot be read: {error}") from error
    if term is None:
        hint = did_you_mean(where, (SHIPPED, NO_PORTFOLIO))
        raise PlanError(
            f"portfolio: {where!r} is neither {SHIPPED} nor {NO_PORTFOLIO}, nor a file or a run directory.{hint}"
        )
    if not (found := learned(records)):
        raise PlanError(
            f"portfolio: the run {where!r} has no customer with two finished trials of different scores, so nothing "
            "can be learned from it. Name a run that has ended."
        )
    return found


def _of_file(path: str, text: bytes) -> Configurations:
    try:
        content = parse_yaml(text.decode("utf-8"), path)
    except (UnicodeDecodeError, SpaceError) as error:
        raise PlanError(f"portfolio: {path!r} cannot be read: {error}") from error
    found = content.get("configurations") if isinstance(content, Mapping) else content
    if not isinstance(found, list) or not found or not all(isinstance(config, Mapping) for config in found):
        raise PlanError(f"portfolio: {path!r} holds {shorten(repr(found), 60)}; {FORM} is expected.")
    return tuple({str(name): value for name, value in config.items()} for config in found)
