"""`tuning schema`: the JSON Schema of a definition or a search space, for editors."""

from __future__ import annotations

import json

import click

from tuning.cli.program import Command


@click.command(cls=Command)
@click.option("--space", is_flag=True, help="The schema of a search space in a file of its own.")
def schema(space: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of a definition file.

    Editors complete and check a file that names the schema in its first line:

    \b
    tuning schema > definition.schema.json
    # yaml-language-server: $schema=definition.schema.json
    """
    from search_spaces import json_schema
    from tuning.definition.json_schema import definition_schema

    click.echo(json.dumps(json_schema() if space else definition_schema(), indent=2, ensure_ascii=False))
