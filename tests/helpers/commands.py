"""Commands as a user types them, with never a traceback for a user's mistake."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from tuning.cli.program import main

FAST = (
    "--progress=none",
    "--in-process",
    "--set",
    "mlflow=false",
    "--set",
    "search_space=logistic",
    "--set",
    "trials=2",
)


def tuning(*arguments: str | Path) -> Result:
    """What a command answers."""
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert "Traceback" not in answer.output
    return answer
