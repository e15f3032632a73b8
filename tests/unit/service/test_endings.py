"""What becomes of a run follows the command's own exit codes."""

from __future__ import annotations

from tuning.cli import exit_codes
from tuning.service.supervisor import endings


def test_the_server_knows_the_exit_codes_of_the_command() -> None:
    assert endings.ENDED_BY_ITSELF == (0, exit_codes.SOME_WITHOUT_MODEL, exit_codes.ALL_WITHOUT_MODEL)
    assert endings.WRONG == (exit_codes.USAGE, exit_codes.REFUSED)
    assert endings.OWNED == exit_codes.OWNED
