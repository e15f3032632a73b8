"""A run as one HTML page: tiles, pictures of all customers, a table of them, what to do, and what was guessed.

A page is bounded whatever the run's size: it shows the first customers and some of the trials, and says so.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount, command, is_served, shorten
from tuning.definition.baselines import baseline_name
from tuning.notes import FitCode
from tuning.records.columns import Figure, View
from tuning.records.figures import shown_in
from tuning.records.gains import is_error
from tuning.records.schema import FAILED, OK, POOLED
from tuning.reporting.data_table import DataColumn, DataTable
from tuning.reporting.html import Block, HtmlTable, Page, Picture, PictureRow, Points, Section, Text, drawn
from tuning.runs.leaderboard import SCHEMA, as_recorded_notes
from tuning.runs.note_groups import MOST_NOTED, Group, grouped, noted, notes_at_the_end
from tuning.runs.optuna_study import MOST_TRIALS
from tuning.runs.outcome import REPORT, answer, remarks
from tuning.runs.plan_file import frozen_definition, read_spec
from tuning.runs.report.customer import customer_sections
from tuning.runs.report.tiles import run_tiles, tone_of
from tuning.runs.results import RunResult

LEAST_DRAWN = 5  # customers; of fewer the table says as much as pictures
MOST_CUSTOMERS = 50_000  # in the table
MOST_DRAWN = 100_000  # customers that pictures are of, from all over
MOST_GROUPS = 15  # of reasons and notes
MOST_TEXT = 240  # characters of a cell
REPORT_VIEWS: tuple[View, ...] = ("report", "details")
_NARROW = ("status", "verdict", "test_score", "gain")
_REPLACED = ("cv_score", "baseline_test_score", "rare_rows")
# What the pictures need of customers' best studies; `seconds` are of all their studies.
_DRAWN = ("customer", "status", "test_score", "gain", "rows", "seconds")


def write_report(result: RunResult, *, quick: bool = False) -> str:
    """Write a run's page into its folder; the name to show. quick: as of `page`."""
    result.directory.write(REPORT, page(result, quick=quick).encode())
    return result.directory.display(REPORT)


def load_ahead(studies: int) -> None:
    """Import the libraries that draw, which takes half a second, where a run of that many studies has pictures."""
    if not 1 < studies < LEAST_DRAWN:
        names = ["jinja2", "matplotlib.backends.backend_svg", "tuning.runs.plots"]
        if studies == 1 and "sklearn" in sys.modules:  # it would import that, which takes a second
            names.append("optuna.importance")
        for name in names:
            importlib.import_module(name)


def page(result: RunResult, *, quick: bool = False) -> str:
    """Return a run's page. quick: the part on a single customer fits its model again only where that takes seconds."""
    counts, alone = result.summary(), len(result.board()) == 1
    trials = result.some_trials(["study", "trial", "customer", "state", "reason"], MOST_TRIALS)
    told = Points([*answer(result, counts), *remarks(result, counts)])
    sections = [
        Section("", pictures(result)),
        *(customer_sections(result.customer(), quick=quick) if alone else []),
        Section("Customers", [_customers(result)]),
        Section("What to do", [told, *_contradicted(result), *_failures(result, trials)]),
        *_settled(result),
        Section("How to go on", [Points(_next(result))]),
    ]
    shown = [each for each in sections if each.blocks]
    footer = (
        f"Run {counts['run']}, {counts['run_dir']}: {amount(counts['trials'], 'trial')} in "
        f"{counts['wall_seconds']:,.0f} s, {counts['fit_seconds']:,.0f} CPU seconds of training. Written on "
        f"{time.strftime('%Y-%m-%d %H:%M')} by tuning-service."
    )
    definition = frozen_definition(result.directory, result.term)
    what = "the best of one search" if definition.target is None else f"the best model of {definition.target!r}"
    whom = "" if alone else " for every customer"
    return Page(f"{definition.name}: {what}{whom}", "", shown, footer, run_tiles(result, counts)).html()


def pictures(result: RunResult) -> list[Block]:
    """Return the pictures of all customers."""
    board = result.board()
    if len(board) < LEAST_DRAWN:
        return []
    from tuning.runs import plots

    studies = board.standings.best_studies([*_DRAWN])
    blocks: list[Block] = []
    if len(studies) > MOST_DRAWN:
        blocks.append(Text(f"The pictures are of a part of the {amount(len(board), 'customer')}, taken from all over."))
        studies = studies.take(pa.array(range(0, len(studies), -(-len(studies) // MOST_DRAWN))))
    found: list[Picture] = []
    there = {name for name in studies.column_names if studies[name].null_count < len(studies)}
    if "gain" in there:
        about = f"A bar above the line is a customer whose model is better than {baseline_name(result.baseline)}"
        alt = "Gain over the baseline of every customer, the largest first"
        gains = partial(plots.gains, studies, board.metric)
        found.append(drawn(gains, alt, f"{about}, on rows that the search never saw."))
    if "test_score" in there:
        better = "rise" if board.mode == "max" else "fall"
        alt = "Hold-out score against the number of rows of each customer"
        sizes = partial(plots.score_and_size, studies, board.metric)
        found.append(drawn(sizes, alt, f"Where the dots {better} to the right, more rows would help small customers."))
    if len(studies):
        without = pc.any(pc.not_equal(studies["status"], OK)).as_py()
        alt = f"Seconds per customer{', with and without a model' if without else ''}"
        about = (
            f"Customers far to the right cost most{'; those without a model are explained below' if without else ''}."
        )
        found.append(drawn(partial(plots.time_and_failures, studies), alt, about))
    return [*blocks, *([PictureRow(found)] if found else [])]


def _customers(result: RunResult) -> DataTable:
    board = result.board()
    batches = islice(board.batches(), -(-min(len(board), MOST_CUSTOMERS) // 20_000) or 1)
    rows = pa.concat_tables([SCHEMA.empty_table(), *batches])[:MOST_CUSTOMERS]

    known = rows["test_score"].null_count < len(rows)  # what another column says better is seen in an opened row
    unit = " in %" if is_error(board.metric) else ""
    columns = [
        DataColumn(
            f"{each.name}{unit}" if each.name in ("gain", "gain_over_constant") else each.name,
            _values(rows, each),
            filtered=each.name in ("status", "verdict"),
            narrow=each.name in _NARROW,
            detail=view == "details" or (known and each.name in _REPLACED),
        )
        for view in REPORT_VIEWS
        for each in shown_in(view)
    ]
    kept = [column for column in columns if any(value not in (None, "") for value in column.values)]
    less = (
        f"The first {MOST_CUSTOMERS:,} of {amount(len(board), 'customer')}; leaderboard.csv in the run's folder has "
        "all."
        if len(board) > MOST_CUSTOMERS
        else ""
    )
    # What a row's own page has would not fit into this one for thousands of customers.
    more = f"`{command('report', result.directory.shown)} --customer {{}}`"
    more = more if len(board) > 1 and not is_served() else ""
    pairs = zip(rows["status"].to_pylist(), rows["verdict"].to_pylist(), strict=True)
    return DataTable(kept, "customers", less, more, [tone_of(status, verdict) for status, verdict in pairs])


def _values(rows: pa.Table, figure: Figure) -> list[str | float | None]:
    """Return a column's values."""
    found = rows[figure.name].to_pylist()
    if figure.name in ("reason", "notes"):
        found = [figure.text(as_recorded_notes(row)) for row in rows.select(["reason", "notes"]).to_pylist()]
    values: list[str | float | None] = found
    return [shorten(value, MOST_TEXT) if isinstance(value, str) else value for value in values]


def customers_without(result: RunResult) -> list[Group]:
    """Return the customers without a model by reason, the most frequent first; unfinished ones before all."""
    board = result.board()
    studies = board.standings.best_studies(["customer", "status", "reason"])
    without = studies.filter(pc.invert(pc.is_in(studies["status"], value_set=pa.array([OK, POOLED]))))
    pending = len(board) - len(studies)
    groups = grouped(noted(without, "reason"))
    return [Group(board.unfinished.reason, pending), *groups] if pending and not result.goes_on else groups


def _contradicted(result: RunResult) -> list[Block]:
    """Return the models that the hold-out contradicts; before all else that is to do."""
    groups = notes_at_the_end(result.board().standings.best_studies(["customer", "notes"]))
    found = [group for group in groups if group.note.code is FitCode.CONTRADICTED]
    what = "models that are much worse on the hold-out rows than the folds promised, and not by chance"
    return [_table([group], "customers", f"{group.count:,} {what}") for group in found]


def _failures(result: RunResult, trials: pa.Table) -> list[Block]:
    blocks: list[Block] = []
    if groups := customers_without(result):
        count = sum(group.count for group in groups)
        blocks.append(_table(groups, "customers", f"{amount(count, 'customer')} without a model"))
    failed = trials.filter(pc.equal(trials["state"], FAILED))
    if len(failed):
        among = f"{len(failed):,} failed trials, among {len(trials):,}"
        blocks.append(_table(grouped(noted(failed, "reason")), "trials", among))
    return blocks


def _table(groups: Sequence[Group], counted: str, caption: str, *, advised: bool = True) -> HtmlTable:
    """Return groups of reasons or notes. advised: with what to do about each."""
    shown = groups[:MOST_GROUPS]
    rest = f"; the {len(shown)} most frequent of {amount(len(groups), 'reason')}" if len(groups) > len(shown) else ""
    columns = {
        "reason" if advised else "note": [shorten(str(group.note), MOST_TEXT) for group in shown],
        counted: [f"{group.count:,}" for group in shown],
        "for example": [", ".join(shorten(name, 30) for name in group.examples) for group in shown],
    }
    if advised:
        columns["what to do"] = [group.note.advice for group in shown]
    return HtmlTable(pd.DataFrame(columns), f"{caption}{rest}", prose=True)


def _settled(result: RunResult) -> list[Section]:
    spec = read_spec(result.directory, result.term)
    given = spec.definition
    facts = []
    if spec.task is not None:
        how = "guessed from the target" if given.task == "auto" else "given"
        facts.append(f"The task is {spec.task} ({how}); the target is {given.target!r}.")
        how = "the default of the task" if given.metric is None else "given"
        facts.append(f"The metric is {spec.metric} ({how}); {given.split.test:.0%} of the rows were held out.")
    if given.drop:
        facts.append(f"Left out by drop: {', '.join(map(repr, given.drop))}.")
    notes = result.board().standings.best_studies(["customer", "notes"])[:MOST_NOTED]
    groups = grouped(noted(notes, "notes"))
    facts += [shorten(str(note), 2 * MOST_TEXT) for note in result.notes]
    blocks: list[Block] = [Points(facts)] if facts else []
    if groups:
        among = f"the first {MOST_NOTED:,} customers" if len(notes) == MOST_NOTED else "all customers"
        blocks.append(_table(groups, "customers", f"Notes that customers share, among {among}", advised=False))
    return [Section("What was guessed, dropped and left out", blocks)] if blocks else []


def _next(result: RunResult) -> list[str]:
    """Return commands to type, each with what it does."""
    where, customer = result.directory.shown, "".join(str(row["customer"]) for row in result.board().ends(1))
    lines = [f"`{command('resume', where)}`: go on with what is left"] if result.unfinished else []
    lines += [
        f"`{command('show', where, '--customer', customer)}`: everything about one customer",
        f"`{command('leaderboard', where, '--output', 'csv')}`: all customers with their exact parameters",
    ]
    if len(result.board()) > 1:
        lines.insert(-1, f"`{command('report', where, '--customer', customer)}`: its own report, with pictures")
    if frozen_definition(result.directory, result.term).objective is None:
        explained = [f"`{command('explain', where)}`: which columns matter, for how many customers"]
        lines += [] if is_served() else explained
        lines.append(f"`{command('predict', where, '--customer', customer, '--data', 'new.csv')}`: use a model")
    return lines
