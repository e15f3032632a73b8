"""`tuning plan` and `tuning validate`: what would run, and whether it could, before anything does."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Unpack

import click

from tuning.basics import exit_codes
from tuning.basics.wording import amount, some_names
from tuning.cli.output import say_wait
from tuning.cli.program import Command
from tuning.cli.shared_options import Overrides, definition_options, json_option, read
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers


@click.command(cls=Command)
@definition_options
@json_option
def plan(definition: str, output: str, **options: Unpack[Overrides]) -> None:
    """Show what would run, and where, without starting anything."""
    say_wait("looking at the data")
    made = make_plan(read(definition, **options))
    click.echo(json.dumps(made.to_dict()) if output == "json" else made.describe())


@click.command(cls=Command)
@definition_options
@click.option("--first", type=click.IntRange(min=0), default=100, show_default=True, help="How many customers to read.")
@click.option("--all", "everybody", is_flag=True, help="Read the rows of every customer.")
@json_option
def validate(definition: str, first: int, everybody: bool, output: str, **options: Unpack[Overrides]) -> None:
    """Check DEFINITION and its data; nothing is trained.

    Reads the rows of some customers (the first by id) as a run would, and says which ones would get no model.
    Exit codes: 0 fine, 2 the definition or the data as a whole is wrong, 3 some customers would get no model,
    4 none would.
    """
    asked = read(definition, **options)
    say_wait("looking at the data, and reading customers")
    made = make_plan(asked)
    task, metric = made.spec.task or "an objective", made.spec.metric
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
        for reason, customers in _by_reason(refused).items():
            click.echo(f"{some_names(customers)}: {reason}")
        click.echo(
            f"{amount(len(made.studies), 'customer')}, {task}, {metric}; {_of_those_read(len(refused), len(chosen))}",
            err=True,
        )
    sys.exit(code)


def _by_reason(refused: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the customers of each reason; hundreds may share one."""
    found: dict[str, list[str]] = {}
    for customer, reason in refused.items():
        found.setdefault(reason, []).append(customer)
    return found


def _of_those_read(refused: int, read: int) -> str:
    if not refused:
        return f"the definition is valid, and each of the {amount(read, 'customer')} read can get a model"
    if refused == read:
        return f"none of the {amount(read, 'customer')} read would get a model"
    return f"the definition is valid, and {refused} of the {amount(read, 'customer')} read would get no model"
