"""What commands and runs end with: the one list of it, from which `--help` and docs/commands.md are made.

An error says its own: `exit_code_of` in `tuning.errors`. Another try of the same command is worth it after `failed`
alone.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR = 1
USAGE = 2
SOME_WITHOUT_MODEL = 3
ALL_WITHOUT_MODEL = 4
OWNED = 5
REFUSED = 6
INTERRUPTED = 130  # by Ctrl-C; 143 by SIGTERM


class ExitCode(NamedTuple):
    """number: that the process ends with. outcome: the word for it. short: for `--help`. meaning: on the page."""

    number: int
    outcome: str
    short: str
    meaning: str


CODES = (
    ExitCode(0, "complete", "all customers have a model", "all customers have a model"),
    ExitCode(
        ERROR,
        "failed",
        "storage or machine failed",
        "the storage, a machine or Ray failed, or the program did. What is recorded is kept, and the same command may "
        "succeed later",
    ),
    ExitCode(
        USAGE,
        "invalid",
        "command line, definition or data is wrong",
        "the command line, the definition or the data as a whole is wrong; nothing was started",
    ),
    ExitCode(
        SOME_WITHOUT_MODEL,
        "partial",
        "some customers have no model or a comparison is unfinished",
        "some customers have no model of their own (`predict`: no prediction; with `--strict`: or one that the "
        "hold-out rows contradict), or some studies of a comparison have not finished",
    ),
    ExitCode(ALL_WITHOUT_MODEL, "none", "no customer has a model", "no customer has a model"),
    ExitCode(OWNED, "owned", "somebody else runs it", "another process is running this run, or has taken it over"),
    ExitCode(
        REFUSED,
        "refused",
        "the run cannot be started, resumed or read like this",
        "the run cannot be started, resumed or read like this: a folder that is taken or no run, a changed definition "
        "or changed data, a file of the run that was changed, code that is not allowed. The message says what to do",
    ),
    ExitCode(INTERRUPTED, "interrupted", "interrupted, 143 by SIGTERM (resume with `tuning resume RUN`)", ""),
)


def outcome_of(code: int) -> str:
    """The word for an exit code."""
    return next((each.outcome for each in CODES if each.number == code), "interrupted" if code > INTERRUPTED else "")


def sentence() -> str:
    """All of them, for `--help`."""
    return f"Exit codes: {', '.join(f'{each.number} {each.short}' for each in CODES)}."


def of_models(customers: int, with_model: int, contradicted: int = 0) -> int:
    """All, some or none of the customers have a model. contradicted: how many models are not to be used unread."""
    if with_model == customers and not contradicted:
        return 0
    return SOME_WITHOUT_MODEL if with_model else ALL_WITHOUT_MODEL


def of_searches(unfinished: int) -> int:
    """Some searches of a comparison have not finished."""
    return SOME_WITHOUT_MODEL if unfinished else 0
