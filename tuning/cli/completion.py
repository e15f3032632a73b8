"""`tuning completion`: the shell's completion of commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tuning.cli.program import Command, main


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
