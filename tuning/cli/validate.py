"""`tuning validate`: whether a definition and its data can be searched, before anything runs."""

from __future__ import annotations

import json
import sys
from typing import Unpack

import click

from tuning.basics.wording import amount
from tuning.cli import exit_codes
from tuning.cli.program import Command
from tuning.cli.shared_options import Overrides, definition_options, read
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers
from tuning.records.gains import user_metric


@click.command(cls=Command)
@definition_options
@click.option("--first", type=click.IntRange(min=0), default=100, show_default=True, help="How many customers to read.")
@click.option("--all", "everybody", is_flag=True, help="Read the rows of every customer.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def validate(definition: str, first: int, everybody: bool, output: str, **options: Unpack[Overrides]) -> None:
    """Check DEFINITION and its data; nothing is trained.

    Reads the rows of some customers (the first by id) as a run would, and says which ones would get no model.
    Exit codes: 0 fine, 2 the definition or the data as a whole is wrong, 3 some customers would get no model,
    4 none would.
    """
    made = make_plan(read(definition, **options))
    task, metric = made.spec.task or "an objective", user_metric(made.spec.metric)
    chosen = made.studies if everybody else made.studies[:first]
    refused = check_customers(made, [study.customer for study in chosen])
    code = exit_codes.of_models(len(made.studies), len(made.studies) - len(refused))
    if output == "json":
        outcome = exit_codes.outcome_of(code)
        click.echo(
            json.dumps(
                {"outcome": outcome, **made.to_dict(), "checked": len(chosen), "without_model": refused},
                ensure_ascii=False,
            )
        )
    else:
        for customer, reason in refused.items():
            click.echo(f"{customer!r}: {reason}")
        click.echo(
            f"the definition is valid: {amount(len(made.studies), 'customer')}, {task}, {metric}; "
            f"{len(refused)} of the {amount(len(chosen), 'customer')} read would get no model",
            err=True,
        )
    sys.exit(code)
