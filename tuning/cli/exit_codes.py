"""What the command `tuning` ends with; `tuning --help` lists them."""

from __future__ import annotations

from tuning.errors import DataError, DefinitionError, NoModelError, PlanError, UnknownCustomerError

ERROR = 1  # the storage or the run failed
USAGE = 2  # the command line, the definition or the data has to change
SOME_WITHOUT_MODEL = 3  # or some searches of a comparison have not finished
ALL_WITHOUT_MODEL = 4
INTERRUPTED = 130  # by Ctrl-C; 143 by SIGTERM. The run can be resumed


def of_error(error: Exception) -> int:
    """USAGE when the user's command line, definition or data has to change."""
    if isinstance(error, DefinitionError | PlanError | DataError | UnknownCustomerError):
        return USAGE
    return ALL_WITHOUT_MODEL if isinstance(error, NoModelError) else ERROR


def of_models(customers: int, with_model: int) -> int:
    """All, some or none of the customers have a model."""
    if with_model == customers:
        return 0
    return SOME_WITHOUT_MODEL if with_model else ALL_WITHOUT_MODEL


def of_searches(unfinished: int) -> int:
    """Some searches of a comparison have not finished."""
    return SOME_WITHOUT_MODEL if unfinished else 0
