"""The command `tuning`. Each command's code is imported when it is called, so that `--help` stays quick.

Exit codes: `tuning.basics.exit_codes`. Data goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import sys
import threading
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tuning.basics import exit_codes
from tuning.basics.wording import advice_for_the_shell, amount, did_you_mean
from tuning.errors import HeadLostError, exit_code_of, failure

if TYPE_CHECKING:
    from tuning.driver.signals import Signals

# name → "module:command" and the line that `--help` shows.
COMMANDS: dict[str, tuple[str, str]] = {
    "serving": ("tuning.cli.serving:serving", "Show which model serves each customer, and since when."),
    "completion": ("tuning.cli.editors:completion", "Print the shell's completion script."),
    "delete": ("tuning.cli.results:delete", "Delete a run with everything that it has recorded."),
    "demo": ("tuning.cli.demo:demo", "Make customers to try this on, and train their models."),
    "doctor": ("tuning.cli.doctor:doctor", "Look whether runs can work here, and what to do where they cannot."),
    "explain": ("tuning.cli.customer:explain", "Tell which columns a customer's model looks at."),
    "init": ("tuning.cli.init:init", "Write a commented definition for your data."),
    "leaderboard": (
        "tuning.cli.results:leaderboard",
        "Print the leaderboard of a run: one row per customer.",
    ),
    "plan": ("tuning.cli.plan:plan", "Show what would run, and where, without starting anything."),
    "resume": ("tuning.cli.run:resume", "Resume a run from its records."),
    "rollback": ("tuning.cli.serving:rollback", "Bring back the champions of an earlier release."),
    "run": ("tuning.cli.run:run", "Find the best model for every customer of DEFINITION."),
    "predict": ("tuning.cli.predict:predict", "Predict new rows with a customer's model."),
    "promote": ("tuning.cli.refresh:promote", "Make the models of a run the champions of a name."),
    "prune": ("tuning.cli.serving:prune", "Delete the runs that no newer release of champions needs."),
    "refresh": ("tuning.cli.refresh:refresh", "Bring champions up to date with new rows."),
    "report": ("tuning.cli.results:report", "Write a run's report: one HTML file."),
    "runs": ("tuning.cli.results:runs", "List the runs in a folder, the newest first."),
    "schema": ("tuning.cli.editors:schema", "Print the JSON Schema of a definition, for editors."),
    "serve": ("tuning.cli.serve:serve", "Take definitions over HTTP, queue them for teams, and run them."),
    "show": ("tuning.cli.customer:show", "Tell everything about one customer."),
    "token": ("tuning.cli.token:token", "Tokens of a server: who may use it, and what they may do."),
    "validate": ("tuning.cli.plan:validate", "Check a definition and its data; train nothing."),
    "submit": ("tuning.cli.remote:submit", "Queue a run of DEFINITION on a server."),
    "status": ("tuning.cli.remote:status", "Tell where a server's run stands, or list the team's runs."),
    "watch": ("tuning.cli.remote:watch", "Show the progress of a server's run."),
    "schedule": ("tuning.cli.remote:schedule", "What a server submits again and again."),
    "stop": ("tuning.cli.remote:stop", "End a server's run so that it can be resumed."),
    "cancel": ("tuning.cli.remote:cancel", "End a server's run for good."),
    "compare": ("tuning.cli.compare:compare", "Compare search algorithms: which to use, and how sure that is."),
    "mlflow": ("tuning.cli.mlflow:mlflow", "The copy in MLflow: `mlflow sync RUN` completes it."),
    "tabulate": ("tuning.cli.compare:tabulate", "Evaluate a complete grid, to compare on it in seconds."),
}


class Command(click.Command):
    """A command that refuses an option given twice, of which click would take the last without a word.

    It says where a key or a customer that was given in the wrong way belongs. With `--output json` its errors are an
    object, too.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name for option in self.params for name in option.opts}
        try:
            _, extra, given = self.make_parser(ctx).parse_args(args=list(args))
        except click.NoSuchOption as error:
            key = error.option_name.lstrip("-").replace("-", "_")
            if "--set" in options and _is_a_key(key):
                ctx.fail(f"No such option {error.option_name!r}. It is a key of the definition: --set {key}=VALUE.")
            raise
        if extra and "--customer" in options and not ctx.resilient_parsing:
            ctx.fail(
                f"Got unexpected extra argument {extra[0]!r}. A customer is named by --customer {quote(extra[0])}."
            )
        for option in given:
            takes_one = isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
            if takes_one and given.count(option) > 1 and not ctx.resilient_parsing:
                times = amount(given.count(option), "time")
                ctx.fail(f"{option.opts[0]} is given {times}. It takes one value; give it once.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        stdout = sys.stdout  # which the work may turn elsewhere

        def tell(error: BaseException) -> None:
            if ctx.params.get("output") == "json":
                click.echo(json.dumps(failure(error), ensure_ascii=False), file=stdout)

        def last_words(ended: threading.ExceptHookArgs) -> None:
            if isinstance(error := ended.exc_value, HeadLostError):
                tell(error)
                click.echo(f"error: {error}", err=True)
            else:
                before(ended)

        before, threading.excepthook = threading.excepthook, last_words
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            tell(error)
            raise
        finally:
            threading.excepthook = before


def _is_a_key(name: str) -> bool:
    from tuning.definition.definition import Definition

    return name in Definition.model_fields


class LazyGroup(click.Group):
    """Imports a command's file only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        hint = "" if name in COMMANDS or ctx.resilient_parsing else did_you_mean(name, COMMANDS)
        if hint:
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> Any:
        """As a program (without `args`), signals are heard from the first moment to the last."""
        if args is not None:
            return super().main(args, *others, **options)
        from tuning.driver.signals import Signals

        leave = _Leave()
        atexit.register(leave)  # first, so that it is the last to be called
        code: str | int | None = 0
        with Signals(at_once=True) as signals:
            try:
                super().main(**{**options, "obj": signals})
            except SystemExit as end:
                code = end.code
            except BaseException:
                if not signals.received:
                    raise
                code = exit_codes.ERROR  # a module of C that was just being loaded makes an ImportError of it
            if signals.received and code == exit_codes.ERROR:  # or it came between two of click's own steps
                code = 128 + signals.received
            return _end(signals, code, leave)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with advice_for_the_shell():
                return super().invoke(ctx)
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code_of(error)
            if code is None:
                raise
            if isinstance(error, KeyboardInterrupt):
                if ctx.obj is not None:
                    ctx.obj.leave(code)
                click.echo(str(error) or "stopped by Ctrl-C", err=True)
            else:
                click.echo(f"error: {error}", err=True)
            ctx.exit(code)


class _Leave:
    """Ends the process before the destructors of native libraries run: threads of Arrow that are about to end have made
    them abort a program that was done (apache/arrow#34314). It needs the exit code; without one it does nothing."""

    code: int | None = None

    def __call__(self) -> None:
        if self.code is not None:
            _flush()
            os._exit(self.code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _end(signals: Signals, code: str | int | None, leave: _Leave) -> NoReturn:
    """End the program; with Ray in it, or interrupted, without a farewell: Ray's processes are killed.

    What Ray does when an interpreter ends takes seconds, and after an interruption has crashed it.
    """
    code = 0 if code is None else code
    if not isinstance(code, int) or ("ray" not in sys.modules and code < exit_codes.INTERRUPTED):
        leave.code = code if isinstance(code, int) else None
        sys.exit(code)
    signals.leave(code)
    _flush()
    if "ray" in sys.modules:
        from tuning.driver.cluster import kill_ray

        kill_ray()
    os._exit(code)


@click.group(
    cls=LazyGroup,
    help=f"Find the best model and hyperparameters for every customer.\n\n{exit_codes.sentence()}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="tuning-service", prog_name="tuning")
def main() -> None:
    """The commands."""
