"""What every command answers: its help, the shells' completion, what is given twice or in the wrong place."""

from __future__ import annotations

import pytest
from commands import tuning

from tuning.cli.program import main


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", ".", "--data", "new.csv", "--customer", "acme", "--customer", "beta"),
        ("plan", __file__, "--data", "a.csv", "--data", "b.csv"),
        ("leaderboard", ".", "--output", "csv", "--output", "json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_option_of_one_value_is_refused_twice(arguments: tuple[str, ...]) -> None:
    answer = tuning(*arguments)
    assert answer.exit_code == 2
    assert "is given 2 times. It takes one value; give it once." in answer.stderr


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    answer = tuning("leaderbord")
    assert answer.exit_code == 2
    assert "No such command 'leaderbord'. Did you mean 'leaderboard'?" in answer.stderr
    assert "No such command 'xyz'." in tuning("xyz").stderr


def test_a_key_or_a_customer_in_the_wrong_place_is_told_the_right_one() -> None:
    assert "a key of the definition: --set trials=VALUE." in tuning("run", __file__, "--trials", "11").stderr
    assert "No such option '--trails'" in tuning("run", __file__, "--trails", "11").stderr
    assert "A customer is named by --customer 'acme inc'." in tuning("plan", __file__, "acme inc").stderr


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
