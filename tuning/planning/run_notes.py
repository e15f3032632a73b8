"""Notes of a plan on the run as a whole: how its data is read, what is copied and logged, what hides a package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from unicodedata import is_normalized

from tuning.basics.timing import HANG_TIMES, hang_seconds
from tuning.basics.wording import amount, duration, name_list, size_text
from tuning.data.customers import Customers, about_rows, unpartitioned
from tuning.data.files import left_out
from tuning.data.keys import look_alikes
from tuning.definition.definition import Definition
from tuning.definition.options import MANY_STUDIES, trials_recorded
from tuning.models.registry import families
from tuning.planning.shortages import fewer_at_once, too_large
from tuning.study.study import StudyTable, customers_of

MEASURED = ("catboost", "lightgbm")  # families of the default search that bring a package of their own
MOST_ALIKE = 5  # groups of customers
MANY_LOGS = 10_000  # trials with a folder each
#: Packages that a run imports.
PACKAGES = ("tuning", "search_spaces", "schedulers", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "optuna", "ray")


def run_notes(definition: Definition, studies: StudyTable, slots: int, *, in_process: bool) -> Iterator[str]:
    """Notes on the machine and on what is written, in the order in which they are shown. in_process: without Ray."""
    if not in_process:
        yield from too_large(definition, studies, slots)
        yield from fewer_at_once(definition.resources, slots)
    yield from missing_extras(definition)
    yield from _mlflow_notes(definition, len(studies))
    yield from _logger_notes(definition, int(studies.numbers("n_trials").sum()))
    yield from shadows()


def reading_notes(definition: Definition, customers: Customers) -> Iterator[str]:
    """What of the data is left out, how keyed tables are understood, and who is too small."""
    if isinstance(definition.data, str | list | tuple) and (names := left_out(definition.data)):
        yield (
            f"data: {amount(len(names), 'file')} left out, of no known format or below a name that begins with `_`: "
            f"{name_list(names, 3)}."
        )
    keyed = customers.take(customers.present("key"))
    tables = len(keyed.first_of_each("table"))
    if definition.by and tables > 1:
        yield (
            f"each of the {amount(tables, 'file')} is a table of its own, so a customer is a file and a value of "
            f"{', '.join(definition.by)}; give the folder instead of a pattern to take them as one table."
        )
    if len(keyed) == 1 and keyed[0].key == ():
        yield (
            f"the table has no key columns (`by`), so all its rows are one customer, {definition.name!r} after the "
            "definition's name."
        )
    if alike := look_alikes(customers.texts("id")):
        # What cannot be seen of a Unicode form is spelled out.
        groups = [
            " and ".join((repr if is_normalized("NFC", name) else ascii)(name) for name in names)
            for names in alike[:MOST_ALIKE]
        ]
        yield (
            f"customers that differ only in case, blanks at the ends or Unicode form: {'; '.join(groups)}"
            f"{'; …' * (len(alike) > MOST_ALIKE)}. Each gets a model of its own; if they are one, spell it in one way."
        )
    yield from _short_notes(definition, customers)


def place_notes(customers: Customers) -> Iterator[str]:
    """Where the rows of keyed tables are read, of a run that has not begun."""
    keyed = customers.take(customers.present("key"))
    coming = unpartitioned(keyed)
    if coming.any() and len(customers) > 1:
        size = int(keyed.numbers("size")[coming].sum())
        yield f"the data ({size_text(size)}) is written once into the run directory, divided by customer."
    elif keyed and not coming.any():
        yield "the data is read where it is, each worker its own customers' rows."


def _short_notes(definition: Definition, customers: Customers) -> Iterator[str]:
    """Who can have no model, as far as numbers of rows are known without reading them."""
    rows = customers.numbers("rows", missing=definition.min_rows)
    few = customers.take(rows < definition.min_rows)
    own = "" if definition.pool == "off" else " of their own"
    if definition.objective is None and len(few):
        yield (
            f"{amount(len(few), 'customer')} with fewer rows than min_rows ({definition.min_rows}) will have no model"
            f"{own}: {name_list(few.texts('id').to_pylist(), 3)}. Whether the others can, `tuning validate` tells."
        )


def missing_extras(definition: Definition | None = None) -> Iterator[str]:
    """What the default search is worth without model families that are not installed here.

    definition: one that searches something else gets no note.
    """
    missing = [name for name in MEASURED if families()[name].missing()]
    if definition is not None and (definition.objective or definition.models or definition.search_space is not None):
        return
    if missing:
        yield (
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed, and the default search "
            "does without: on 70 customers, 20 trials without both were worse on 49 and better on 20, 0.7 % worse in "
            f"the median. pip install 'tuning-service[{','.join(missing)}]'"
        )


def _mlflow_notes(definition: Definition, studies: int) -> Iterator[str]:
    """What MLflow does not get of many studies."""
    chosen = definition.mlflow.record_trials
    if definition.mlflow.enabled and trials_recorded(chosen, studies) != trials_recorded(chosen, 0):
        yield (
            f"mlflow.record_trials: {trials_recorded(chosen, studies)}, because of more than {MANY_STUDIES:,} studies: "
            "MLflow gets each customer's run with its main figures, and the winning trial's. The records keep all "
            "trials. `mlflow: {record_trials: all}` copies them all."
        )


def _logger_notes(definition: Definition, trials: int) -> Iterator[str]:
    """Loggers that would write very many folders."""
    if definition.loggers and trials > MANY_LOGS:
        yield f"loggers: {amount(trials, 'trial')} are as many folders; TensorBoard shows some thousand."


def shadows() -> Iterator[str]:
    """Modules in the current folder with the name of a package; Ray puts the folder first in workers' import paths."""
    for name in PACKAGES:
        spec = find_spec(name)
        installed = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
        for path in (Path.cwd() / name / "__init__.py", Path.cwd() / f"{name}.py"):
            if path.is_file() and path.resolve() != installed:
                shown = f"{name}/" if path.name == "__init__.py" else path.name
                yield (
                    f"{shown} in the current folder has the name of a package. Workers here import the package; those "
                    "of a cluster at RAY_ADDRESS would import yours: rename it."
                )


def time_limit_text(definition: Definition, studies: StudyTable) -> str:
    """The time limit of a trial, as a sentence."""
    if (limit := definition.limits.trial_seconds) is not None:
        return f"{duration(limit)} per trial (limits.trial_seconds)"
    of_objective = definition.objective is not None
    rows = float(about_rows(customers_of(studies)).max(initial=0.0))
    least, most = (duration(hang_seconds(each, of_objective=of_objective)) for each in (0.0, rows))
    allowed = least if least == most else f"{least} to {most} (by its rows)"
    return (
        f"a trial is ended after {allowed} without a step, or {HANG_TIMES} times the longest trial before it, "
        "where that is longer; limits.trial_seconds sets another"
    )
