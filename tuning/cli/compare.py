"""`tuning compare` and `tuning tabulate`. What they need is imported when they run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Unpack, cast

import click

from tuning.basics.wording import amount, command
from tuning.cli.program import Command
from tuning.cli.shared_options import C, Overrides, check_target, definition_options, read, running_options

if TYPE_CHECKING:
    from tuning.compare.comparison import AnalysisOptions, Comparison
    from tuning.runs.results import RunResult

FROM = ("from_curves", "from_table", "from_run")
# Options of the analysis, of a definition's `compare`, of a search, and of a run.
ANALYSIS = ("baseline", "axis", "unequal", "alpha", "margin")
COMPARED = ("algorithms", "seeds", "baseline", "seconds")
SEARCHING = ("algorithms", "seeds", "trials", "seconds")
RUNNING = ("data", "customer", "by", "slots", "changes", "run_dir", "resume", "in_process")


class CompareCall(Overrides):
    """The options of `tuning compare`, as its help says them."""

    algorithms: str | None
    seeds: int | None
    trials: int | None
    seconds: float | None
    baseline: str | None
    axis: str | None
    alpha: float | None
    margin: float | None
    from_curves: str | None
    from_table: str | None
    from_run: str | None
    mode: str | None
    unequal: str
    html: str | None
    run_dir: str | None
    resume: bool
    in_process: bool
    progress: str
    output: str


def _optional_definition(command: C) -> C:
    """Add the options of a definition, which may then be missing."""
    command = definition_options(command)
    for param in vars(command)["__click_params__"]:
        if isinstance(param, click.Argument):
            param.required = False
    return command


@click.command(cls=Command)
@_optional_definition
@click.option("--algorithms", metavar="LIST", help="Such as random,optuna,hyperopt,optuna+asha (with a scheduler).")
@click.option("--seeds", type=click.IntRange(min=1), help="Repetitions of each search (default: 10).")
@click.option("--trials", type=click.IntRange(min=1), help="Trials of each search (default: the definition's).")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Seconds of each, instead of trials.")
@click.option("--baseline", metavar="NAME", help="Algorithm that the others are tested against (default: the best).")
@click.option("--axis", type=click.Choice(["trials", "steps", "seconds"]), help="Budget used for the verdict.")
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Significance level [0.05].")
@click.option("--margin", type=click.FloatRange(0, 1), help="Regret that does not matter in practice [0.02].")
@click.option(
    "--from-curves", type=click.Path(exists=True, dir_okay=False), help="Analyse finished curves; run nothing."
)
@click.option("--from-table", type=click.Path(exists=True, dir_okay=False), help="Search recorded evaluations again.")
@click.option("--from-run", metavar="RUN", help="Analyse the comparison in folder RUN again.")
@click.option("--mode", type=click.Choice(["max", "min"]), help="Direction, when the file has no column `mode`.")
@click.option("--unequal", type=click.Choice(["match", "refuse"]), default="match", show_default=True)
@click.option("--html", type=click.Path(dir_okay=False, writable=True), help="Write the report as one HTML page.")
@running_options
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
def compare(definition: str | None, **asked: Unpack[CompareCall]) -> None:
    """Compare search algorithms on the customers of DEFINITION: which to use, and how sure that is.

    Or, without a definition, from finished curves, recorded evaluations or an earlier run; see docs/compare.md.
    """
    source = _source(definition, asked)
    _refuse_idle(source, asked)
    if (html := asked["html"]) is not None:
        check_target(html, "--html", definition, asked["from_curves"], asked["from_table"])
    analysis = cast("AnalysisOptions", _given(asked, ANALYSIS))
    found, result = (_analysed(asked, analysis), None) if definition is None else _run(definition, asked, analysis)
    from tuning.cli.output import show_comparison

    if html is not None:
        found.save(html)
        click.echo(f"report       {html}", err=True)
    sys.exit(show_comparison(found, asked["output"], result))


def _given(asked: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    """Return the options that are not None."""
    return {name: asked[name] for name in names if asked[name] is not None}


def _source(definition: str | None, asked: Mapping[str, object]) -> str:
    """Return the source of a comparison, a definition or one option `--from-…`; `UsageError` for none or several."""
    given = [*_given(asked, FROM), *(["definition"] if definition is not None else [])]
    if len(given) != 1:
        raise click.UsageError(
            "Give one of DEFINITION, --from-curves FILE, --from-table FILE and --from-run RUN"
            + (f", not {len(given)} of them." if given else ".")
        )
    return given[0]


def _refuse_idle(source: str, asked: Mapping[str, object]) -> None:
    """Refuse options of a search or a run where nothing is searched or run, before anybody believes they counted."""
    if asked["mode"] is not None and source in ("definition", "from_run"):
        raise click.UsageError("--mode has no effect here: a definition's metric says its direction; remove it.")
    idle = {"definition": (), "from_table": RUNNING}.get(source, (*RUNNING, *SEARCHING))
    given = [f"--{'set' if name == 'changes' else name.replace('_', '-')}" for name in idle if asked[name]]
    if given:
        named = f"--{source.replace('_', '-')}"
        raise click.UsageError(f"{', '.join(given)} has no effect with {named}, which runs nothing; remove it.")


def _run(definition: str, asked: CompareCall, analysis: AnalysisOptions) -> tuple[Comparison, RunResult]:
    from tuning.definition.compared_methods import parse_methods

    overrides = cast(Overrides, {name: value for name, value in asked.items() if name in Overrides.__annotations__})
    given = read(definition, **overrides)
    if asked["algorithms"] is not None:
        parse_methods(asked["algorithms"])  # a wrong name is told before libraries are loaded, which takes seconds

    from tuning.compare.on_data import comparing, keep
    from tuning.driver.runner import TuneRunner

    made = comparing(given, _given(asked, COMPARED), asked["trials"], {})
    result = TuneRunner(made).run(
        asked["run_dir"], progress=asked["progress"], in_process=asked["in_process"], resume=asked["resume"]
    )
    return keep(result, **analysis), result


def _analysed(asked: CompareCall, analysis: AnalysisOptions) -> Comparison:
    """Return the comparison of an earlier run, of finished curves or of a replay."""
    from tuning.compare import Curves, Table, analyse, compare_on_table, comparison_of
    from tuning.errors import DefinitionError

    if (run := asked["from_run"]) is not None:
        return comparison_of(run, **analysis)
    if (path := asked["from_curves"]) is not None:
        return analyse(Curves.read(path, asked["mode"]), source=path, **analysis)
    if asked["algorithms"] is None:
        raise DefinitionError("There are no algorithms to compare; give --algorithms, such as random,optuna.")
    path = str(asked["from_table"])
    return compare_on_table(
        Table.read(path, asked["mode"]),
        asked["algorithms"],
        asked["seeds"] or 10,
        asked["trials"],
        asked["seconds"],
        source=path,
        **analysis,
    )


@click.command(cls=Command)
@definition_options
@click.option("--levels", type=click.IntRange(min=1), default=5, show_default=True, help="Values per number.")
@click.option("--limit", type=click.IntRange(min=1), default=10_000, show_default=True, help="Configurations at most.")
@click.option("--to", "target", required=True, metavar="FILE.parquet", help="The table to write.")
@running_options
def tabulate(
    definition: str,
    levels: int,
    limit: int,
    target: str,
    run_dir: str | None,
    resume: bool,
    in_process: bool,
    progress: str,
    **overrides: Unpack[Overrides],
) -> None:
    """Evaluate a complete grid of every customer, so that searches can be replayed (compare --from-table)."""
    from tuning.compare.tabular.table import Table
    from tuning.compare.tabular.tabulate import tabulate as run

    Table.target(target)
    check_target(target, "--to", definition, overrides.get("data"))
    table = run(
        read(definition, **overrides),
        levels=levels,
        limit=limit,
        run_dir=run_dir,
        resume=resume,
        progress=progress,
        in_process=in_process,
    )
    table.write(target)
    for note in table.notes:
        click.echo(note, err=True)
    click.echo(
        f"{target}: {amount(len(table.configs), 'configuration')} of {amount(len(table.tasks), 'customer')}. "
        f"Compare on it: {command('compare', '--from-table', str(target), '--algorithms', 'random,optuna')}",
        err=True,
    )
