"""`tuning promote`: the models of a run as the champions of a name."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tuning.basics.wording import amount
from tuning.champions.accepting import accept
from tuning.champions.champion import NONE
from tuning.champions.promoting import SURE, Promoted, promote_run
from tuning.champions.proposal import Proposal
from tuning.champions.releases import Releases
from tuning.champions.report import answers_text
from tuning.champions.rules import promotion_rules
from tuning.cli.champions import say_copied, say_refused
from tuning.cli.program import Command
from tuning.cli.run_argument import newest
from tuning.cli.shared_options import allow_code_option, storage_option
from tuning.errors import RunError
from tuning.runs import exit_codes
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.tracking.release_copy import registration_cost


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN", required=False)
@click.option("--as", "name", metavar="NAME", help="Of the champions.")
@click.option("--accept", "proposal", metavar="FILE", help="In place of RUN: whom a refresh with `ask` proposes.")
@click.option(
    "--promotion",
    type=click.Choice(list(promotion_rules())),
    default=SURE,
    show_default=True,
    help="Of customers that have a champion: replace it by the run's winner (newest), never, or let that stand against "
    "it until `tuning refresh` has compared the two on new rows.",
)
@storage_option
@allow_code_option
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def promote(
    run_dir: str | None,
    name: str | None,
    proposal: str | None,
    promotion: str,
    storage: str,
    allow_code: bool,
    output: str,
) -> None:
    """Make the winners of the run in folder RUN the champions NAME, as a new release.

    A customer without a model gets a constant, or the run's pool; so does one whose model is worse than a constant on
    the hold-out rows. The same command again changes nothing.
    """
    if proposal is not None:
        if run_dir is not None or name is not None:
            raise click.UsageError("--accept takes a file that names the champions: leave out RUN and --as.")
        _accept(proposal, storage, output)
        return
    if run_dir is None or name is None:
        raise click.UsageError("give RUN and --as NAME, or --accept FILE.")
    releases, result = Releases(name, storage), RunResult(newest(run_dir))
    done = promote_run(result, releases, promotion, allow_code=allow_code)
    say_refused(releases)
    customers = sum(done.answers.values())
    code = exit_codes.of_models(customers, customers - done.answers.get(NONE, 0))
    if output == "json":
        told = {
            "outcome": exit_codes.outcome_of(code),
            "release": done.release.number,
            "new": done.new,
            "answers": dict(done.answers),
            "added": done.added,
            "replaced": done.replaced,
            "challengers": done.challengers,
        }
        click.echo(json.dumps(told))
    else:
        click.echo(_sentence(releases, done))
    if cost := registration_cost(frozen_definition(result.directory).mlflow, customers):
        click.echo(cost, err=True)
    say_copied(releases)
    click.get_current_context().exit(code)


def _accept(file: str, storage: str, output: str) -> None:
    try:
        proposal = Proposal.of_json(Path(file).read_text(encoding="utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{file} cannot be read: {error}. Give the file that the refresh has named.") from error
    releases = Releases(proposal.name, storage)
    release = accept(proposal, releases)
    promoted = len(proposal.decisions)
    if output == "json":
        click.echo(json.dumps({"release": release.number, "promoted": promoted}))
    else:
        click.echo(f"release {release.number} of {proposal.name}: {amount(promoted, 'challenger')} promoted")
    say_copied(releases)


def _sentence(releases: Releases, done: Promoted) -> str:
    number, name = done.release.number, releases.name
    if not done.new:
        return f"release {number} of {name} has all of this already; nothing was changed"
    changes = [
        f"{count:,} {what}"
        for count, what in (
            (done.added, "new"),
            (done.replaced, "replaced"),
            (done.challengers, "stand against their champion until `tuning refresh` has compared them"),
        )
        if count
    ]
    return f"release {number} of {name}: {answers_text(done.answers)}; {', '.join(changes) or 'nobody is replaced'}"
