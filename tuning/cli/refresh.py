"""`tuning promote` and `tuning refresh`: the models of a run serve, and learn the rows that come."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import NoReturn, Unpack

import click

from tuning.basics import exit_codes
from tuning.basics.wording import some_names
from tuning.cli.program import Command
from tuning.cli.run_argument import newest
from tuning.cli.serving import say_refused, tell_release
from tuning.cli.shared_options import (
    Overrides,
    allow_code_option,
    champions_options,
    definition_options,
    json_option,
    progress_option,
    read,
    storage_option,
)
from tuning.definition.definition import Definition
from tuning.driver.runner import TuneRunner
from tuning.notes import Note
from tuning.planning.studies import Fixed
from tuning.runs.results import RunResult
from tuning.serving.champion import NONE
from tuning.serving.plan import RULES, RefreshOptions, plan_refresh
from tuning.serving.promoting import promote_run
from tuning.serving.refresh import Refresh, Refreshed
from tuning.serving.releases import Releases
from tuning.serving.report import answers_text
from tuning.storage.run_directory import RunDirectory

DEFAULTS = RefreshOptions()


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN")
@click.option("--as", "name", metavar="NAME", required=True, help="Of the champions.")
@storage_option
@allow_code_option
@json_option
def promote(run_dir: str, name: str, storage: str, allow_code: bool, output: str) -> None:
    """Make the winners of the run in folder RUN the champions NAME, as a new release.

    A customer without a model gets a constant, or the run's pool; so does one whose model is worse than a constant on
    the hold-out rows. Customers that the run does not have keep their champions. The same command again changes
    nothing.
    """
    releases, result = Releases(name, storage), RunResult(newest(run_dir))
    done = promote_run(result, releases, allow_code=allow_code)
    say_refused(releases)
    number, line = done.release.number, f"release {done.release.number} of {name}"
    if done.new:
        line += f": {answers_text(done.answers)}; {done.added:,} new, {done.replaced:,} replaced"
    else:
        line += " has all of this already; nothing was changed"
    told = {"release": number, "new": done.new, "answers": done.answers, "added": done.added, "replaced": done.replaced}
    _end(releases, told if output == "json" else line, done.answers, done.new)


@click.command(cls=Command)
@champions_options
@definition_options
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--promotion",
    type=click.Choice(RULES),
    default=DEFAULTS.promotion,
    show_default=True,
    help="When the winner of a search serves: if it is better on the hold-out, always, or never.",
)
@click.option(
    "--min-gain",
    type=click.FloatRange(0.0, 100.0, max_open=True),
    default=DEFAULTS.min_gain,
    show_default=True,
    metavar="GAIN",
    help="By how much it must be better: in % of an error, else as a difference of scores.",
)
@click.option(
    "--search-every",
    type=click.IntRange(min=1),
    default=DEFAULTS.search_every,
    show_default=True,
    metavar="N",
    help="Refreshes after which a customer is searched for again.",
)
@click.option("--retire", is_flag=True, help="Customers that are not in the data any more lose their champions.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process.")
@allow_code_option
@progress_option
@json_option
def refresh(
    name: str, storage: str, definition: str, only_plan: bool, promotion: str, min_gain: float, search_every: int,
    retire: bool, in_process: bool, allow_code: bool, progress: str, output: str, **options: Unpack[Overrides],
) -> None:  # fmt: skip
    """Bring the champions NAME up to date with the rows of DEFINITION, as a new release.

    Whoever has other rows than before gets one fit of the configuration that serves. Where it is due, a search looks
    for a better one. Where no row is new, nothing is done. The same command again goes on after a crash.
    """
    chosen = RefreshOptions(promotion, min_gain, search_every, retire=retire)
    releases = Releases(name, storage)
    plan = plan_refresh(read(definition, **options), releases, chosen)
    say_refused(releases)
    if only_plan:
        click.echo(json.dumps(plan.to_dict()) if output == "json" else plan.describe())
        return

    def train(definition: Definition, fixed: Fixed, folder: str) -> RunDirectory:
        runner = TuneRunner(definition, fixed=fixed)
        return runner.run(folder, progress=progress, in_process=in_process, resume=True).directory

    done = Refresh(plan, releases, train, allow_code=allow_code).run()
    for line in note_lines(done.notes):
        click.echo(line, err=True)
    _end(releases, done.to_dict() if output == "json" else _sentence(name, done), done.answers, done.new)


def _end(releases: Releases, told: str | Mapping[str, object], answers: Mapping[str, int], new: bool) -> NoReturn:
    """Say what came of it, write the page of a new release, and end with the exit code of its answers."""
    customers = sum(answers.values())
    code = exit_codes.of_models(customers, customers - answers.get(NONE, 0))
    if not isinstance(told, str):
        told = json.dumps({"outcome": exit_codes.outcome_of(code), **told}, ensure_ascii=False)
    click.echo(told)
    tell_release(releases, new)
    sys.exit(code)


def _sentence(name: str, done: Refreshed) -> str:
    if not done.new:
        return f"no row is new, so nothing was done; release {done.release.number} of {name} is in force"
    said = f"{len(done.fitted):,} fitted again, {len(done.searched):,} searched for, {len(done.promoted):,} promoted"
    return f"release {done.release.number} of {name}: {answers_text(done.answers)}; {said}"


def note_lines(notes: Mapping[str, tuple[Note, ...]]) -> Iterator[str]:
    """Yield a line for each note, with the customers that have it, and one for each advice."""
    customers: dict[Note, list[str]] = {}
    for name, of_customer in sorted(notes.items()):
        for note in of_customer:
            customers.setdefault(note, []).append(name)
    for note, names in customers.items():
        yield f"note: {some_names(names)}: {note}"
    yield from dict.fromkeys(note.advice for note in customers if note.advice)
