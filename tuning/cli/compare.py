"""`tuning compare` and `tuning tabulate`. What they need is imported when they run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack, cast

import click

from tuning.cli.program import Command
from tuning.cli.shared_options import C, Overrides, check_target, definition_options, progress_option, read

if TYPE_CHECKING:
    from tuning.compare.comparison import AnalysisOptions, Comparison

SOURCES = ("from_curves", "from_table", "from_run")


def _optional_definition(command: C) -> C:
    """The options of a definition, which is then not asked for."""
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
@click.option("--run-dir", metavar="DIR", help="The run's folder (default: <storage>/<name>-<time>).")
@click.option("--resume", is_flag=True, help="Resume when the folder already holds this comparison.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging.")
@progress_option
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
def compare(
    definition: str | None,
    algorithms: str | None,
    seeds: int | None,
    trials: int | None,
    seconds: float | None,
    baseline: str | None,
    axis: str | None,
    alpha: float | None,
    margin: float | None,
    from_curves: str | None,
    from_table: str | None,
    from_run: str | None,
    mode: str | None,
    unequal: str,
    html: str | None,
    run_dir: str | None,
    resume: bool,
    in_process: bool,
    progress: str,
    output: str,
    **overrides: Unpack[Overrides],
) -> None:
    """Compare search algorithms on the customers of DEFINITION: which to use, and how sure that is.

    Or, without a definition, from finished curves, recorded evaluations or an earlier run; see docs/compare.md.
    """
    from tuning.cli.output import show_comparison
    from tuning.compare.on_data import comparing, comparison_of, keep
    from tuning.driver.runner import TuneRunner

    _one_source(definition, from_curves, from_table, from_run)
    _no_effect(
        {"--from-curves": from_curves, "--from-run": from_run, "--from-table": from_table},
        {
            "algorithms": algorithms,
            "seeds": seeds,
            "trials": trials,
            "seconds": seconds,
            "slots": overrides.get("slots"),
        },
        {**overrides, "slots": None, "run_dir": run_dir, "resume": resume, "in_process": in_process},
    )
    if mode is not None and from_curves is None and from_table is None:
        raise click.UsageError("--mode has no effect here: a definition's metric says its direction; remove it.")
    if html is not None:
        check_target(html, "--html", definition, from_curves, from_table)
    given = {"baseline": baseline, "axis": axis, "unequal": unequal, "alpha": alpha, "margin": margin}
    analysis = cast("AnalysisOptions", {name: value for name, value in given.items() if value is not None})
    result = None
    if from_curves is not None:
        found = _from_curves(from_curves, mode, analysis)
    elif from_table is not None:
        slots = overrides.get("slots") or 1
        found = _from_table(from_table, mode, algorithms, seeds, trials, seconds, slots, analysis)
    elif from_run is not None:
        found = comparison_of(from_run, **analysis)
    else:
        assert definition is not None
        asked = {"algorithms": algorithms, "seeds": seeds, "baseline": baseline, "seconds": seconds}
        asked = {name: value for name, value in asked.items() if value is not None}
        made = comparing(read(definition, **overrides), asked, trials, {})
        runner = TuneRunner(made)
        result = runner.run(run_dir, progress=progress, in_process=in_process, resume=resume)
        found = keep(result, **analysis)
    if html is not None:
        found.save(html)
        click.echo(f"report       {html}", err=True)
    sys.exit(show_comparison(found, output, result))


def _one_source(definition: str | None, *others: str | None) -> None:
    given = [source for source in (definition, *others) if source is not None]
    if len(given) != 1:
        raise click.UsageError(
            "Give one of DEFINITION, --from-curves FILE, --from-table FILE and --from-run RUN"
            + (f", not {len(given)} of them." if given else ".")
        )


def _no_effect(sources: dict[str, str | None], searching: Mapping[str, object], running: Mapping[str, object]) -> None:
    """Refuse options of a search or a run where nothing is searched or run, before anybody believes they counted."""
    source = next((name for name, value in sources.items() if value is not None), None)
    if source is None:
        return
    idle = {**running, **({} if source == "--from-table" else searching)}
    given = [f"--{name.replace('_', '-')}" for name, value in idle.items() if value]
    if given:
        raise click.UsageError(f"{', '.join(given)} has no effect with {source}, which runs nothing; remove it.")


def _from_curves(path: str, mode: str | None, analysis: AnalysisOptions) -> Comparison:
    from tuning.compare.analysis.curves import Curves
    from tuning.compare.comparison import analyse

    return analyse(Curves.read(path, mode), source=path, **analysis)


def _from_table(
    path: str,
    mode: str | None,
    algorithms: str | None,
    seeds: int | None,
    trials: int | None,
    seconds: float | None,
    workers: int,
    analysis: AnalysisOptions,
) -> Comparison:
    from tuning.compare.tabular.replay import compare_on_table
    from tuning.compare.tabular.table import Table
    from tuning.errors import DefinitionError

    if algorithms is None:
        raise DefinitionError("There are no algorithms to compare; give --algorithms, such as random,optuna.")
    table = Table.read(path, mode)
    return compare_on_table(table, algorithms, seeds or 10, trials, seconds, workers=workers, source=path, **analysis)


@click.command(cls=Command)
@definition_options
@click.option("--levels", type=click.IntRange(min=1), default=5, show_default=True, help="Values per number.")
@click.option("--limit", type=click.IntRange(min=1), default=10_000, show_default=True, help="Configurations at most.")
@click.option("--to", "target", required=True, metavar="FILE.parquet", help="The table to write.")
@click.option("--run-dir", metavar="DIR", help="The run's folder (default: <storage>/<name>-<time>).")
@click.option("--resume", is_flag=True, help="Resume when the folder already holds this run.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging.")
@progress_option
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
    made = run(
        read(definition, **overrides),
        levels=levels,
        limit=limit,
        run_dir=run_dir,
        resume=resume,
        progress=progress,
        in_process=in_process,
    )
    made.table.write(target)
    for note in made.notes:
        click.echo(note, err=True)
    click.echo(
        f"{target}: {len(made.table.configs)} configurations of {len(made.table.tasks)} customers. "
        f"Compare on it: tuning compare --from-table {target} --algorithms random,optuna",
        err=True,
    )
