"""`tuning refresh`: champions learn from new rows, and who is better is promoted."""

from __future__ import annotations

import json
import sys
from typing import Unpack

import click

from tuning.basics.wording import amount, command
from tuning.champions.releases import Releases
from tuning.champions.report import answers_text, write_report
from tuning.champions.rules import promotion_rules
from tuning.champions.rules.rule import STANDS
from tuning.cli.champions import say_copied, say_refused
from tuning.cli.program import Command
from tuning.cli.shared_options import (
    Overrides,
    allow_code_option,
    champions_options,
    definition_options,
    progress_option,
    read,
)
from tuning.refresh.notes import note_lines
from tuning.refresh.options import RefreshOptions
from tuning.refresh.plan import plan_refresh
from tuning.refresh.refresh import Refresh, Refreshed
from tuning.refresh.verdicts import drift_text
from tuning.runs import exit_codes
from tuning.tracking.release_copy import registration_cost

DEFAULTS = RefreshOptions()
MOST_SHOWN = 3  # of the champions that drift


@click.command(cls=Command)
@champions_options
@definition_options
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--promotion",
    type=click.Choice(sorted(promotion_rules())),
    default=DEFAULTS.promotion,
    show_default=True,
    help="Who replaces a champion (docs/weekly-refresh.md).",
)
@click.option(
    "--false-discoveries",
    type=float,
    default=DEFAULTS.false_discoveries,
    show_default=True,
    help="Share of the promoted that may be no better.",
)
@click.option(
    "--least-gain",
    type=float,
    default=DEFAULTS.least_gain,
    show_default=True,
    help="Share of the champion's loss by which a challenger must be better.",
)
@click.option(
    "--search-every",
    type=click.IntRange(min=1),
    default=DEFAULTS.search_every,
    show_default=True,
    help="Refreshes after which a customer is tuned again.",
)
@click.option(
    "--drift-tolerance",
    type=float,
    default=DEFAULTS.drift_tolerance,
    show_default=True,
    help="Share of the promised loss by which a champion may be worse on new rows before its customer is tuned anew.",
)
@click.option("--retire", is_flag=True, help="Customers that are not in the data any more lose their champions.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process.")
@allow_code_option
@progress_option
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def refresh(
    name: str,
    storage: str,
    definition: str,
    only_plan: bool,
    promotion: str,
    false_discoveries: float,
    least_gain: float,
    search_every: int,
    drift_tolerance: float,
    retire: bool,
    in_process: bool,
    allow_code: bool,
    progress: str,
    output: str,
    **options: Unpack[Overrides],
) -> None:
    """Bring the champions NAME up to date with the rows of DEFINITION, as a new release.

    New rows first tell how good champions and challengers are. Then the models learn from them, with one fit each.
    Where it is due, a search looks for a better one, which stands against the champion until new rows have shown that
    it is better. Where no row is new, nothing is done. The same command again goes on after a crash.
    """
    chosen = RefreshOptions(
        promotion=promotion,
        false_discoveries=false_discoveries,
        least_gain=least_gain,
        search_every=search_every,
        drift_tolerance=drift_tolerance,
        retire=retire,
    )
    releases = Releases(name, storage)
    plan = plan_refresh(read(definition, **options), releases, chosen)
    say_refused(releases)
    if only_plan:
        cost = registration_cost(plan.definition.mlflow, len(plan.champions))
        told = {**plan.to_dict(), **({"mlflow": cost} if cost else {})}
        click.echo(json.dumps(told) if output == "json" else "\n".join(filter(None, [plan.describe(), cost])))
        return
    for note in plan.changes.notes:
        click.echo(f"note: {note}", err=True)
    done = Refresh(plan, releases, allow_code=allow_code).run(progress, in_process)
    for line in note_lines(done.notes):
        click.echo(line, err=True)
    if done.new and (done.drift or done.notes or plan.changes.notes):
        click.echo(f"if the data is wrong: {releases.command('rollback', name)}, mend it, and refresh again", err=True)
    code = exit_codes.of_models(sum(done.answers.values()), done.with_model)
    if output == "json":
        found = {"outcome": exit_codes.outcome_of(code), **done.to_dict(), "week": list(plan.changes.notes)}
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        click.echo(_sentence(releases, done))
    if done.new:
        click.echo(f"report       {write_report(releases)}", err=True)
    say_copied(releases)
    sys.exit(code)


def _sentence(releases: Releases, done: Refreshed) -> str:
    name = releases.name
    if not done.new:
        return f"no row is new, so nothing was done; release {done.release.number} of {name} is in force"
    said = [answers_text(done.answers), f"{amount(done.fitted, 'champion')} fitted again"]
    said += [f"{count:,} {outcome}" for outcome, count in sorted(done.outcomes.items()) if outcome != STANDS]
    said += [f"{len(done.drift):,} worse than promised, tuned anew"] * bool(done.drift)
    said.append(f"{amount(done.challengers, 'challenger')} {'stands' if done.challengers == 1 else 'stand'}")
    asked = done.proposal and f"to accept what is proposed: {command('promote', '--accept', done.proposal)}"
    drift = [f"{each.customer} {drift_text(each)}" for each in done.drift[:MOST_SHOWN]]
    look = "who was promoted, who nearly was, and who drifts: "
    look = look + releases.command("champions", name, "--decisions") if done.decisions or done.drift else ""
    sentence = f"release {done.release.number} of {name}: {'; '.join(said)}"
    return "\n".join(filter(None, [sentence, done.said_of_all, *drift, look, asked]))
