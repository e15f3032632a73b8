"""`tuning --help`, of each command, and the shells' completion."""

from __future__ import annotations

import pytest
from commands import tuning

from tuning.cli.program import main


def test_help_names_every_command() -> None:
    answer = tuning("--help")
    for name in ("init", "validate", "plan", "run", "resume", "leaderboard", "predict", "compare", "completion"):
        assert f"\n  {name} " in answer.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_completion_is_printed(shell: str) -> None:
    answer = tuning("completion", shell)
    assert answer.exit_code == 0
    assert "_TUNING_COMPLETE" in answer.stdout


@pytest.mark.parametrize("name", sorted(main.list_commands(None)))
def test_every_command_has_help(name: str) -> None:
    answer = tuning(name, "--help")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("Usage: ")
