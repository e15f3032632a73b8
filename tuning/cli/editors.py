"""`tuning schema` and `tuning completion`: what editors and shells can know."""

from __future__ import annotations

import json

import click
from click.shell_completion import get_completion_class

from tuning.cli.program import Command, main


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


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  tuning completion bash > ~/.local/share/bash-completion/completions/tuning
    zsh:   tuning completion zsh > ~/.zfunc/_tuning        (with ~/.zfunc in fpath)
    fish:  tuning completion fish > ~/.config/fish/completions/tuning.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "tuning", "_TUNING_COMPLETE").source())
