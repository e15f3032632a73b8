"""What commands print of a run: the leaderboard to stdout, the rest to stderr."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import click

from tuning.basics import exit_codes
from tuning.basics.public import wait_notice
from tuning.basics.wording import amount, better_text, command, shorten, value_text
from tuning.data.formats.csv_file import csv_text
from tuning.notes.note import plain
from tuning.records.columns import FigureRow
from tuning.records.figures import STUDY_FIGURES, brief_names, named, shown_in
from tuning.runs.leaderboard import LEADERBOARD
from tuning.runs.outcome import ANSWERED, answer, where, without_model
from tuning.runs.outcome_file import read_outcome
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.tracking.settings import how_to_look, tracking_uri_of

if TYPE_CHECKING:
    from tuning.compare.comparison import Comparison


def show_finished(result: RunResult, output: str, *, strict: bool = False) -> int:
    """Print what came of a run: the report of a comparison, else its leaderboard or counts; the exit code.

    strict: whether a model that the hold-out contradicts counts as none.
    """
    if frozen_definition(result.directory).compare is not None:
        from tuning.compare.on_data import keep

        return show_comparison(keep(result), output, result)
    counts = result.summary()
    code = exit_codes.of_models(counts["customers"], counts["succeeded"], counts["contradicted"] if strict else 0)
    if output == "json":
        told = read_outcome(result.directory)
        ended = {"outcome": exit_codes.outcome_of(code), "exit_code": code}
        click.echo(json.dumps({**counts, **(told or {}), **ended}))
    else:
        click.echo("\n".join(["", *answer(result, counts), ""]), err=True)
        if output == "csv":
            show_leaderboard(result, output)
        else:
            _write(f"{line}\n" for line in _end_table(result))
        width = window_width() or 120
        lacking = [shorten(_one_line(line), width) for line in without_model(result)]
        more = counts["without_model"] - len(lacking)
        rest = [f"… {more:,} more without a model"] if more > 0 and lacking else []
        click.echo("\n".join(["", *lacking, *rest, *where(result), *_in_mlflow(result)]), err=True)
    return code


def _in_mlflow(result: RunResult) -> list[str]:
    """Return how to look at the run's copy in MLflow, where it has one."""
    definition = frozen_definition(result.directory)
    if not definition.mlflow.enabled:
        return []
    uri = tracking_uri_of(result.directory, definition.mlflow.tracking_uri)
    return [f"{'mlflow':<8} {how_to_look(uri, definition.mlflow.experiment or definition.name)}"]


def show_comparison(found: Comparison, output: str, result: RunResult | None = None) -> int:
    """Print a comparison and, if it was just run, where all is; the exit code."""
    code = exit_codes.of_searches(0 if found.unfinished is None else found.unfinished.searches)
    if output == "json":
        told = {"outcome": exit_codes.outcome_of(code), "exit_code": code, **found.to_dict()}
        click.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    elif output == "csv":
        click.echo(csv_text(found.table().reset_index(), exact=False), nl=False)
    else:
        click.echo(found.text(window_width()))
        if result is not None:
            from tuning.compare.on_data import CURVES, PAGE

            click.echo("\n".join(["", *where(result, (PAGE, CURVES, "records"))]), err=True)
    return code


def explain(result: RunResult) -> None:
    """Print the tracebacks of the records, each once, with its customer and reason."""
    reasons = {
        (record.customer, str(record.reason or "")): record.error
        for records in (result.study_records, result.trial_records)
        for record in records
        if record.error
    }
    for (customer, reason), error in reasons.items():
        click.echo(f"customer {customer!r}: {reason}\n{error}", err=True)


def show_leaderboard(result: RunResult, output: str, sort: str = "customer", formulas: str = "guard") -> None:
    """Print a leaderboard. A table that a terminal's window does not hold is shown by its first and last rows.

    sort: see `RunResult.leaderboard`. formulas: see `formulas_option`, in CSV.
    """
    board = result.board(sort)
    if output == "csv":
        _write(piece.decode() for piece in board.csv(exact=formulas == "keep"))
    elif output == "json":
        rows = ({name: _plain(value) for name, value in row.items()} for row in board)
        _write(f"{', ' if number else '['}{json.dumps(row, ensure_ascii=False)}" for number, row in enumerate(rows))
        click.echo("]" if len(board) else "[]")
    else:
        width, height = _window()
        if height is None or len(board) <= (most := max(2, height - AROUND)):
            _write(f"{line}\n" for line in lines(board, width, sort))
            return
        last = most // 3
        shown = list(lines(board.ends(most - last, last), width, sort))
        cut = len(shown) - last
        how = command("leaderboard", result.directory.shown, *([] if sort == "customer" else ["--sort", sort]))
        between = f"… and {len(board) - most:,} more between: {how} | less -S"
        _write(f"{line}\n" for line in [*shown[:cut], between, *shown[cut:]])


def _write(texts: Iterable[str]) -> None:
    """Print many texts; `click.echo` flushes after each."""
    sys.stdout.writelines(texts)
    sys.stdout.flush()


AROUND = 5  # lines of a window other than rows: what is better, the columns, the line between, the prompt
END_ROWS, END_WIDTH = 10, 80  # of the table at the end of a run
_FIGURES = named(STUDY_FIGURES)
PARAMS, REASON = _FIGURES["params"], _FIGURES["reason"]
LAST = "params or reason"
LAST_WIDTH, LAST_LEAST = 70, 20
LEAST = 8  # characters of a column that is cut to the window
#: The columns before the last one, in their order.
SHOWN = tuple(each for each in shown_in("terminal") if not each.long)
#: What a narrow window does without, in this order; of the score on the folds where there is one on the hold-out.
SPARED = ("without_target", "baseline_test_score", "cv_score", "rows")
#: What it cuts then, in this order, and the characters that are left.
CUT = {"model": 12, LAST: 10, "customer": 12}


def _end_table(result: RunResult) -> Iterator[str]:
    """Yield the first customers with a model, and the command that shows all."""
    board, counts = result.board(), result.summary()
    rows = [row for row in board.ends(END_ROWS) if row["status"] in ANSWERED]
    if not rows:
        return
    shown = brief_names(rows)
    if frozen_definition(result.directory).objective is not None:
        shown = shown - {"model"} | {LAST}
    yield from lines(rows, min(window_width() or END_WIDTH, END_WIDTH), shown=shown)
    if (more := counts["succeeded"] + counts["pooled"] - len(rows)) > 0:
        yield f"… {more:,} more: {command('leaderboard', result.directory.shown)}"


def lines(
    rows: Iterable[FigureRow], width: int | None = None, sort: str = "customer", shown: set[str] | None = None
) -> Iterator[str]:
    """Yield a leaderboard for a terminal: the metric, then a line per customer with parameters or reason.

    A column that no row has anything in is left out.

    rows: gone through twice. width: characters that fit into a line; None is no limit. sort: a column of `LEADERBOARD`
    that is to be seen. shown: columns that are; None is all. Of ensembles the best member then.
    """
    wanted = sort
    names = [*_line(dict.fromkeys(LEADERBOARD), wanted)]
    widths, there = {name: len(name) for name in names}, {"customer", wanted, LAST}
    better, positive = "", Counter[str]()

    def texts(row: FigureRow) -> dict[str, str]:
        found = _line(row, wanted)
        return found if shown is None else {**found, "model": brief_model(found["model"])}

    for row in rows:
        better = better or better_text(str(row["metric"]), str(row["mode"]))
        positive.update([] if row["positive"] is None else [str(row["positive"])])
        for name, text in texts(row).items():
            widths[name] = max(widths[name], len(text))
            there.update({name} if text else ())
    there &= there if shown is None else shown
    names = [name for name in names if name in there]
    if width is None:
        widths[LAST] = min(widths[LAST], LAST_WIDTH)
    else:
        _fit(names, widths, width, wanted)
    yield _cut(f"{better}{_positive(positive)}", width)
    for line in chain([{name: name for name in names}], map(texts, rows)):
        yield _cut(_cells(line, names, widths), width)


def _cells(line: dict[str, str], names: list[str], widths: dict[str, int]) -> str:
    """Return a line of the table. A long reason begins where the columns before it are empty."""
    shown, room = [name for name in names if name != LAST], widths[LAST]
    while LAST in names and shown and len(line[LAST]) > room and not line[shown[-1]]:
        room += widths[shown.pop()] + 2
    line = {**line, "model": brief_model(line["model"], widths["model"])} if "model" in shown else line
    cells = [f"{shorten(line[name], widths[name]):{_side(name)}{widths[name]}}" for name in shown]
    last = [shorten(line[LAST], room)] if LAST in names else []
    return "  ".join([*cells, *last]).rstrip()


def brief_model(model: str, room: int = 0) -> str:
    """Shorten an ensemble to its best member and the number of the others: `catboost +3`. room: 0 shortens always."""
    found = _ENSEMBLE.match(model) if len(model) > room else None
    room = room or 26
    if found is None:
        return model
    others = f" +{int(found[1]) - 1}"
    return shorten(found[2], room - len(others)) + others


_ENSEMBLE = re.compile(r"ensemble of ([0-9]+) \(([^,)…]+)")


def _fit(names: list[str], widths: dict[str, int], width: int, wanted: str) -> None:
    """Leave columns out, and cut others, until a line fits. names: of the columns. wanted: one that stays."""

    def over() -> int:
        return sum(widths[name] + 2 for name in names) - 2 - width

    whole = widths[LAST]
    widths[LAST] = min(whole, LAST_LEAST)
    for name in SPARED:
        needed = name == wanted or (name == "cv_score" and "test_score" not in names)
        if over() > 0 and name in names and not needed:
            names.remove(name)
    for name, least in CUT.items():
        if over() > 0 and name in names:
            widths[name] = max(min(least, widths[name]), widths[name] - over())
    widths[LAST] = min(whole, widths[LAST] + max(0, -over()))


def _cut(line: str, width: int | None) -> str:
    return line if width is None else shorten(line, width)


def _positive(found: Counter[str]) -> str:
    """Return the positive class of most customers, which probability, precision and recall are about."""
    if not found:
        return ""
    ((most, times),) = found.most_common(1)
    others = f", another one for {amount(found.total() - times, 'customer')}" if len(found) > 1 else ""
    return f", positive class {most!r}{others}"


def _line(row: FigureRow, wanted: str) -> dict[str, str]:
    """Return the shown values of a row, by column. wanted: a column that is always among them."""
    figures = dict.fromkeys((*SHOWN, *({_FIGURES[wanted]} - {PARAMS, REASON})))
    shown = {each.name: shorten(_one_line(each.text(row)), 30) for each in figures}
    return {**shown, LAST: _one_line(PARAMS.text(row) or REASON.text(row))}


def _side(name: str) -> str:
    """Align texts to the left of their column, numbers to the right."""
    return ">" if name != LAST and _FIGURES[name].is_number else "<"


def aligned(names: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None) -> Iterator[str]:
    """Yield a small table as lines, without empty columns; without rows there is none.

    width: characters that fit into a line; the widest columns are cut to it. None is no limit.
    """
    texts = [[_one_line(value_text(cell)) for cell in row] for row in rows]
    kept = [place for place in range(len(names)) if any(row[place] for row in texts)]
    if not kept:
        return
    table = [*([list(names)] if any(names) else []), *texts]
    widths = {place: max(len(row[place]) for row in table) for place in kept}
    while width is not None and sum(widths.values()) + 2 * (len(kept) - 1) > width and max(widths.values()) > LEAST:
        widths[max(widths, key=lambda place: widths[place])] -= 1
    for row in table:
        yield _cut("  ".join(shorten(row[place], widths[place]).ljust(widths[place]) for place in kept).rstrip(), width)


def _one_line(value: object) -> str:
    """Return a value in one line, without control characters of a terminal."""
    text = "" if value is None else " ".join(str(value).split())
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _plain(value: object) -> object:
    """Return a value for JSON: no NaN; a note with its code, values and sentence."""
    return None if isinstance(value, float) and not math.isfinite(value) else plain(value)


def _window() -> tuple[int | None, int | None]:
    """Return columns and lines of the terminal; None where nobody looks, such as in a pipe."""
    size = shutil.get_terminal_size((0, 0))
    return size.columns or None, (size.lines or None) if sys.stdout.isatty() else None


def show_pages(text: Iterable[str]) -> None:
    """Print lines, page by page where a window does not hold them and somebody can turn pages."""
    found = list(text)
    _, height = _window()
    if height is not None and len(found) >= height:
        click.echo_via_pager(f"{line}\n" for line in found)
    else:
        _write(f"{line}\n" for line in found)


def say_wait(what: str) -> None:
    """Tell somebody who watches what the command does before its first output."""
    click.get_current_context().with_resource(wait_notice(what))


def window_width() -> int | None:
    """Return the columns of the terminal; None where nobody looks."""
    return _window()[0]
