"""The command `tuning`. Each command's code is imported when it is called, so that `--help` stays quick.

Exit codes: 0 all customers have a model, 1 storage or run failed, 2 command line, definition or data is wrong, 3 some
customers have no model, 4 none has, 130/143 interrupted and resumable. Data goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from tuning.definition.definition import Definition
    from tuning.driver.signals import Signals
    from tuning.runs.results import RunResult

# Commands that live in files of their own: name → "module:command" and the line that `--help` shows.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "completion": ("tuning.cli.completion:completion", "Print the shell's completion script."),
    "init": ("tuning.cli.init:init", "Write a commented definition for your data."),
    "predict": ("tuning.cli.predict:predict", "Predict new rows with a customer's model."),
    "validate": ("tuning.cli.validate:validate", "Check a definition and its data; train nothing."),
    "compare": ("tuning.cli.compare:compare", "Compare search algorithms: which to use, and how sure that is."),
    "mlflow": ("tuning.cli.mlflow:mlflow", "The copy in MLflow: `mlflow sync RUN` completes it."),
    "tabulate": ("tuning.cli.compare:tabulate", "Evaluate a complete grid, to compare on it in seconds."),
}

EXIT_ERROR, EXIT_USAGE, EXIT_SOME, EXIT_NONE, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class _Lazy(click.Group):
    """Finds commands of other files by name and imports them only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in ELSEWHERE:
            return super().get_command(ctx, name)
        module, _, attribute = ELSEWHERE[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = super().get_command(ctx, name)
            rows.append((name, ELSEWHERE[name][1] if command is None else command.get_short_help_str(80)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, args: Any = None, *others: Any, **options: Any) -> Any:
        """As a program (without `args`), signals are heard from the first moment to the last."""
        if args is not None:
            return super().main(args, *others, **options)
        from tuning.driver.signals import Signals

        code: Any = 0
        with Signals(at_once=True) as signals:
            try:
                super().main(**{**options, "obj": signals})
            except SystemExit as end:
                code = end.code
            except BaseException:
                if not signals.received:
                    raise
                code = EXIT_ERROR  # a module of C that was just being loaded makes an ImportError of it
            if signals.received and code == EXIT_ERROR:  # or it came between two of click's own steps
                code = 128 + signals.received
            return _end(signals, code)

    def invoke(self, ctx: click.Context) -> Any:
        from tuning.errors import TuningError

        try:
            return super().invoke(ctx)
        except TuningError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(exit_code(error))
        except ValueError as error:
            if type(error).__module__.partition(".")[0] not in ("search_spaces", "schedulers"):
                raise
            click.echo(f"error: {error}", err=True)  # a space's or scheduler's own word on a definition
            ctx.exit(EXIT_USAGE)
        except KeyboardInterrupt as stop:
            code = getattr(stop, "exit_code", EXIT_INTERRUPTED)
            if ctx.obj is not None:
                ctx.obj.leave(code)
            click.echo(str(stop) or "stopped by Ctrl-C", err=True)
            ctx.exit(code)


def _end(signals: Signals, code: Any) -> NoReturn:
    """End the program; with Ray in it, or interrupted, without a farewell: Ray's processes end with this one.

    What Ray does when an interpreter ends takes seconds, and after an interruption has crashed it.
    """
    import contextlib

    code = 0 if code is None else code
    if not isinstance(code, int) or ("ray" not in sys.modules and code < EXIT_INTERRUPTED):
        sys.exit(code)
    signals.leave(code)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def exit_code(error: Exception) -> int:
    """What a command ends with: EXIT_USAGE when the user's command line, definition or data has to change."""
    from tuning.errors import DataError, DefinitionError, NoModelError, PlanError, UnknownCustomerError

    if isinstance(error, DefinitionError | PlanError | DataError | UnknownCustomerError):
        return EXIT_USAGE
    return EXIT_NONE if isinstance(error, NoModelError) else EXIT_ERROR


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="tuning-service", prog_name="tuning")
def main() -> None:
    """Find the best model and hyperparameters for every customer.

    Exit codes: 0 all customers have a model, 1 storage or run failed, 2 command line, definition or data is wrong,
    3 some customers have no model, 4 none has, 130/143 interrupted (resume with `tuning resume RUN`).
    """


def definition_options(command: Any) -> Any:
    """The options that override a definition's keys."""
    command = click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key (value is YAML; dots for parts).",
    )(command)
    command = click.option("--slots", type=click.IntRange(min=1), help="Trials at once (default: the CPUs).")(command)
    command = click.option("--by", multiple=True, metavar="COLUMN", help="Key column(s): each value is a customer.")(
        command
    )
    command = click.option("--customer", multiple=True, metavar="ID", help="Only this customer (may be given again).")(
        command
    )
    command = click.option("--data", metavar="PATH", help="File, folder or glob, instead of the definition's.")(command)
    return click.argument("definition", type=click.Path(exists=True, dir_okay=False))(command)


output_option = click.option(
    "--output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Form of the data.",
)


@main.command()
@definition_options
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan(definition: str, output: str, **options: Any) -> None:
    """Show what would run, where and at what cost, without starting anything."""
    from tuning.planning.plan import make_plan

    made = make_plan(read(definition, **options))
    click.echo(json.dumps(made.to_dict()) if output == "json" else made.describe())


@main.command()
@definition_options
@click.option("--run-dir", metavar="DIR", help="The run's folder (default: <storage>/<name>-<time>).")
@click.option("--resume", "again", is_flag=True, help="Go on when the folder holds this run already.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging; see --customer.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@output_option
def run(
    definition: str, run_dir: str | None, again: bool, in_process: bool, quiet: bool, output: str, **options: Any
) -> None:
    """Search the best model for every customer of DEFINITION."""
    from tuning.driver.runner import TuneRunner
    from tuning.errors import DefinitionError

    if again and run_dir is None:
        raise DefinitionError("--resume needs --run-dir, the folder of the run to go on with.")
    runner = TuneRunner(read(definition, **options))
    result = runner.run(run_dir, progress=not quiet, in_process=in_process, resume=again)
    if in_process and options["customer"]:
        explain(result)
    finish(result, output)


@main.command()
@click.argument("run_dir", metavar="RUN")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change what a resume may change, such as trials=80 or limits.run_seconds=3600.",
)
@click.option("--quiet", is_flag=True, help="No progress line.")
@output_option
def resume(run_dir: str, changes: tuple[str, ...], quiet: bool, output: str) -> None:
    """Go on with the run in folder RUN from its records."""
    from tuning.driver.runner import TuneRunner

    overrides: dict[str, Any] = {}
    for change in changes:
        _override(overrides, change)
    finish(TuneRunner.resume(run_dir, progress=not quiet, **overrides), output)


@main.command()
@click.argument("run_dir", metavar="RUN")
@output_option
def leaderboard(run_dir: str, output: str) -> None:
    """Print the leaderboard of the run in folder RUN: one row per customer."""
    from tuning.runs.results import RunResult

    show(RunResult(run_dir), output)


def read(
    definition: str,
    data: str | None,
    by: tuple[str, ...],
    customer: tuple[str, ...],
    slots: int | None,
    changes: tuple[str, ...],
) -> Definition:
    """The definition of a file with the command line's overrides."""
    from tuning.definition.yaml_file import read_definition

    overrides: dict[str, Any] = {}
    for change in changes:
        _override(overrides, change)
    if data is not None:
        overrides["data"] = data if "://" in data else os.path.abspath(os.path.expanduser(data))
    if by:
        overrides["by"] = list(by)
    if customer:
        overrides["customers"] = list(customer)
    if slots is not None:
        overrides["slots"] = slots
    return read_definition(definition, overrides)


def _override(overrides: dict[str, Any], change: str) -> None:
    from search_spaces import SpaceError
    from search_spaces.yaml_text import parse_yaml
    from tuning.errors import DefinitionError

    key, found, value = change.partition("=")
    if not found or not all(key.split(".")):
        raise DefinitionError(f"--set {change!r}: KEY=VALUE is expected, such as --set trials=50.")
    try:
        parsed = parse_yaml(value, "the value")
    except SpaceError as error:
        raise DefinitionError(f"--set {change!r}: {error}.") from error
    *parents, last = key.split(".")
    for parent in parents:
        overrides = overrides.setdefault(parent, {})
        if not isinstance(overrides, dict):
            raise DefinitionError(f"--set {change!r}: {parent!r} is set to {overrides!r} already, it has no parts.")
    overrides[last] = parsed


def explain(result: RunResult) -> None:
    """The tracebacks that the records keep, each once: what somebody who debugs a customer wants to see."""
    told = {
        (record.customer, record.reason): record.error
        for records in (result.study_records, result.trial_records)
        for record in records
        if record.error
    }
    for (customer, reason), error in told.items():
        click.echo(f"customer {customer!r}: {reason}\n{error}", err=True)


def finish(result: RunResult, output: str) -> None:
    """Show a finished run and end with the exit code that tells how many customers have a model."""
    counts = result.summary()
    if output == "json":
        click.echo(json.dumps(counts))
    else:
        show(result, output)
        click.echo(_where(result, counts), err=True)
    if counts["succeeded"] == counts["customers"]:
        return
    sys.exit(EXIT_NONE if counts["succeeded"] == 0 else EXIT_SOME)


def show(result: RunResult, output: str) -> None:
    """Print a leaderboard."""
    board = result.leaderboard()
    if output == "csv":
        click.echo(board.to_csv(index=False), nl=False)
    elif output == "json":
        click.echo(board.to_json(orient="records", force_ascii=False))
    else:
        click.echo(table(board))


def table(board: Any) -> str:
    """A leaderboard for a terminal: one line per customer, with the parameters or the reason why there is no model."""
    shown = board[["customer", "status", "model", "cv_score", "test_score"]].copy()
    shown["default"], shown["gain"], shown["trials"] = board["default_test_score"], board["gain"], board["trials"]
    for name in ("cv_score", "test_score", "default", "gain"):
        shown[name] = shown[name].map(lambda value: "" if value != value or value is None else f"{value:.4g}")
    shown["customer"] = shown["customer"].map(lambda value: _cut(value, 30))
    shown["parameters or reason"] = [
        _cut(params if isinstance(params, str) and params else reason, 70)
        for params, reason in zip(board["params"], board["reason"], strict=True)
    ]
    shown = shown.astype(object).fillna("").astype(str)
    widths = {name: max(len(name), *shown[name].map(len), 0) for name in shown}
    left = {"customer", "status", "model", "parameters or reason"}
    rows = [dict(zip(shown, shown, strict=True)), *shown.to_dict("records")]
    return "\n".join(
        "  ".join(f"{row[name]:{'<' if name in left else '>'}{width}}" for name, width in widths.items()).rstrip()
        for row in rows
    )


def _cut(value: Any, width: int) -> str:
    text = "" if value is None or value != value else " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _against_default(counts: dict[str, Any]) -> list[str]:
    compared, worse = counts["compared_with_default"], counts["worse_than_default"]
    if not compared:
        return []
    return [
        f"On the hold-out {worse} of {compared} winners other than the default configuration "
        f"({100 * worse / compared:.0f} %) are worse than it; more rows, folds or `winner: one_standard_error` make "
        "that rarer."
    ]


def _where(result: RunResult, counts: dict[str, Any]) -> str:
    from tuning.runs.plan_file import frozen_definition
    from tuning.tracking.settings import how_to_look, tracking_uri_of

    without = f", {counts['without_model']} without (the reason is in their row)" if counts["without_model"] else ""
    lines = [
        "",
        f"{counts['succeeded']} of {counts['customers']} customers have a model{without}; {counts['trials']} trials.",
        *_against_default(counts),
        f"records      {result.directory.display('records')}",
        f"models       {result.directory.display('models')}",
        f"leaderboard  tuning leaderboard {result.directory.shown}",
    ]
    definition = frozen_definition(result.directory)
    if definition.mlflow.enabled:
        uri = tracking_uri_of(result.directory, definition.mlflow.tracking_uri)
        lines.append(f"mlflow       {how_to_look(uri, definition.mlflow.experiment or definition.name)}")
    return "\n".join(lines)
