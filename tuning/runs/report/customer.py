"""One customer of a run as a page, and as part of the page of a run that has a single one: what was tried, how the
model does on rows that it has never seen, and which columns it looks at.

The hold-out rows are read again, and the winner is fitted again on the others. A page runs none of the user's code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tuning.basics.wording import amount, command, shorten
from tuning.definition.definition import Definition
from tuning.errors import reason_of
from tuning.records.schema import STOPPED, as_row
from tuning.reporting.html import Block, HtmlTable, Page, Picture, PictureRow, Points, Section, Text, drawn
from tuning.runs.configurations import weights_of
from tuning.runs.customer_result import OBJECTIVE, CustomerResult
from tuning.runs.explanation import Winner
from tuning.runs.outcome import of_one
from tuning.runs.plan_file import frozen_definition
from tuning.runs.report.tiles import customer_tiles
from tuning.runs.results import RunResult
from tuning.storage.names import slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = "reports"  # in the run's folder
MOST_DRAWN = 2_000  # trials with a curve, rows with a dot
MOST_CLASSES = 8  # in one picture
MOST_ROWS = 30  # of the table of trials
MOST_TEXT = 240  # characters of a cell
MOST_COLUMNS_S = 20.0  # that shuffling all columns may take
QUICK_S, QUICK_CELLS = 5.0, 2e6  # of fits and of rows, beyond which nobody is to wait at a run's end


def write_customer_report(result: RunResult, customer: str) -> str:
    """Write a customer's page into the run's folder; the name to show."""
    name = f"{FOLDER}/{slug(customer)}.html"
    result.directory.write(name, customer_page(result, customer).encode())
    return result.directory.display(name)


def customer_page(result: RunResult, customer: str) -> str:
    """Return a customer's page."""
    found, board = result.customer(customer), result.board()
    row = next(each for each in board if each["customer"] == customer)
    run = result.summary()["run"]
    said = str(found) if found.params is None else of_one(row, board.metric, board.mode, result.baseline)
    facts = pd.DataFrame(found.facts(), columns=["figure", "value"])
    blocks: list[Block] = [
        Points([said, *map(str, found.notes)]),
        *([HtmlTable(facts, prose=True)] if len(facts) else []),
    ]
    sections = [*customer_sections(found), Section("In words and figures", blocks)]
    tiles = customer_tiles(row, board.metric, result.baseline)
    footer = f"Run {run}, {result.directory.shown}. Written on {time.strftime('%Y-%m-%d %H:%M')} by tuning-service."
    shown = [each for each in sections if each.blocks]
    return Page(f"{customer} in {run}", "" if tiles else said, shown, footer, tiles).html()


def customer_sections(found: CustomerResult, *, quick: bool = False) -> list[Section]:
    """Return what the winner says of hold-out rows, what matters, and what was tried. quick: if it takes seconds."""
    tried = Section("What was tried, and how it did", _trials(found, quick=quick))
    study = found.study
    if study is None or study.trial is None or study.task == OBJECTIVE:
        return [tried]
    where = "On rows that the search never saw"
    if why := _not_now(found, quick=quick):
        return [tried, Section(where, [Text(why)])]
    try:
        winner = found.explained()
        rows = winner.hold_out()
        unseen = PictureRow(class_pictures(rows) if rows.attrs["classes"] else number_pictures(rows))
        matters = _what_matters(winner, found)
    except Exception as error:  # of the data, or of a library that draws, fits or scores
        why = f"The model could not be asked about the hold-out rows: {reason_of(error)}"
        return [tried, Section(where, [Text(why)])]
    return [Section(where, [unseen]), Section("What matters", matters), tried]


def own_code(definition: Definition) -> list[str]:
    """Return the keys of a definition whose code a model that is fitted again runs."""
    keys = {"prepare": definition.prepare is not None, "metric": definition.own_metric}
    keys["models"] = any(not entry.built_in for entry in definition.models)
    return [key for key, there in keys.items() if there]


def _not_now(found: CustomerResult, *, quick: bool) -> str:
    """Return why the model is not fitted again for the page; empty where it is."""
    study = found.study
    assert study is not None
    ask = f"Python's `result.customer({found.customer!r}).hold_out()` has the predictions."
    if keys := own_code(frozen_definition(found.directory)):
        code = " and ".join(f"`{key}`" for key in keys)
        return f"A report runs no code of yours, and the model needs that of {code}: {ask}"
    if not study.test_rows:
        return "No rows were held out (`split.test: 0`)."
    members = {(study.study, trial) for trial in weights_of(as_row(study))}
    seconds = sum(each.fit_seconds for each in found.trial_records if each.key in members)
    if quick and (seconds > QUICK_S or study.rows * max(1, study.features) > QUICK_CELLS):
        return (
            "Predicted against actual, and what matters: `tuning report` adds them. The winner is fitted again for "
            "that, and a run does not wait for it at its end."
        )
    return ""


def _trials(found: CustomerResult, *, quick: bool = False) -> list[Block]:
    """Return what was tried. quick: without importances where they take longer than the search of an objective."""
    from tuning.runs import plots

    records = found.trial_records[:MOST_DRAWN]
    states = [record.state for record in records if record.steps]
    blocks: list[Block] = []
    if states:
        about = "Every line is a trial."
        about += " A cross is where the scheduler or a stopping rule ended it." if STOPPED in states else ""
        of = [drawn(partial(plots.learning_curves, records), "Score of each trial step by step", about)]
        if found.winner is not None and found.winner.changing:
            about = "What changed while the winner trained. Its parameters are those of the last stage."
            of.append(drawn(partial(plots.schedule, found), "The winner's hyperparameters by step", about))
        objective = found.study is not None and found.study.task == OBJECTIVE
        at_once = quick and objective and sum(record.seconds for record in records) < QUICK_S
        if not at_once and (effects := found.parameter_effects()):
            about = "Few trials say little: the smaller bars may be chance."
            told = partial(plots.parameters_across_customers, effects)
            of.append(drawn(told, "What matters in a search", about))
        blocks.append(PictureRow(of))
    columns, rows = found.best_trials(MOST_ROWS)
    if rows:
        cells = [[shorten(str(cell), MOST_TEXT) for cell in row] for row in rows]
        count = len(found.trial_records)
        caption = (
            f"The best {len(rows)} of {amount(count, 'trial')}" if count > len(rows) else "All trials, the best first"
        )
        blocks.append(HtmlTable(pd.DataFrame(cells, columns=list(columns)), caption, folded=len(rows) > 10))
    return blocks


def number_pictures(rows: pd.DataFrame) -> list[Picture]:
    """Return the pictures of hold-out rows whose target is a number, as scikit-learn draws them."""
    from sklearn.metrics import PredictionErrorDisplay

    def draw(kind: str) -> Callable[[Axes], object]:
        return lambda axes: PredictionErrorDisplay.from_predictions(
            rows["actual"],
            rows["prediction"],
            kind=kind,
            subsample=MOST_DRAWN,
            random_state=0,
            scatter_kwargs={"alpha": 0.6, "s": 14},
            ax=axes,
        )

    on_the_line = "A dot is a row; on the line the prediction is right."
    about = "Where the dots bend or fan out, there is something that the model has not learned."
    return [
        drawn(draw("actual_vs_predicted"), "Predicted against actual values", on_the_line),
        drawn(draw("residual_vs_predicted"), "Residuals against predicted values", about),
    ]


def class_pictures(rows: pd.DataFrame) -> list[Picture]:
    """Return the pictures of hold-out rows whose target is a class."""
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay

    actual, classes = rows["actual"], rows.attrs["classes"]
    frequent = actual.value_counts().index[:MOST_CLASSES]
    shown = [label for label in classes if label in frequent]

    def confusion(axes: Axes) -> None:
        names = [shorten(str(label), 14) for label in shown]
        ConfusionMatrixDisplay.from_predictions(
            actual,
            rows["prediction"],
            labels=shown,
            display_labels=names,
            xticks_rotation=45 if len(names) > 4 else 0,
            cmap="Blues",
            colorbar=False,
            ax=axes,
        )

    def roc(axes: Axes) -> None:
        for label in classes[1:] if len(classes) == 2 else shown:
            if 0 < (actual == label).sum() < len(actual):
                said, name = rows[f"probability_{label}"], shorten(str(label), 20)
                RocCurveDisplay.from_predictions(actual == label, said, name=name, ax=axes)
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        axes.set(xlabel="False positive rate", ylabel="True positive rate")
        if len(axes.lines) > 1:
            axes.legend(frameon=False, fontsize=8, loc="lower right")

    def calibration(axes: Axes) -> None:
        if len(classes) == 2:
            is_so, said, name = actual == classes[1], rows[f"probability_{classes[1]}"], str(classes[1])
        else:
            said = rows[[f"probability_{label}" for label in classes]].max(axis=1)
            is_so, name = actual == rows["prediction"], "the predicted class"
        name = shorten(name, 20)
        CalibrationDisplay.from_predictions(is_so, said, n_bins=10, strategy="quantile", name=name, ax=axes)
        axes.set(xlabel="Mean predicted probability", ylabel="Share of the rows where it is so")

    some = f" Of the {len(shown)} classes with most rows." if len(shown) < len(classes) else ""
    of = [drawn(confusion, "Confusion matrix", f"How many rows of each class are taken for which.{some}")]
    if f"probability_{classes[0]}" in rows:
        area = "A model that guesses is on the straight line; one that is always right has the area (AUC) 1."
        line = "On the line, what the model gives 30 % happens in 30 of 100 rows."
        of += [drawn(roc, "ROC curve", area), drawn(calibration, "Calibration of the probabilities", line)]
    return of


def _what_matters(winner: Winner, found: CustomerResult) -> list[Block]:
    from tuning.runs import plots

    started = time.perf_counter()
    winner.model.prediction(winner.rows)
    takes = (time.perf_counter() - started) * 10 * len(winner.model.columns)
    if takes > MOST_COLUMNS_S:
        explain = command("explain", found.directory.shown, "--customer", found.customer)
        return [Text(f"`{explain}` tells which columns matter; here it would take about {takes:,.0f} s.")]
    table = winner.importance()
    if not np.isfinite(table["importance"]).all():
        return [Text("The metric is not defined on some shuffled rows, so what matters cannot be told.")]
    caption = "Columns that say the same share their importance. Of the winner, fitted without the hold-out rows."
    return [PictureRow([drawn(partial(plots.column_importance, table), "Importance of each column", caption)])]
