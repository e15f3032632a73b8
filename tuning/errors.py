"""Everything this program raises on purpose::

    TuningError
    ├── DefinitionError      the definition is wrong: change it
    │   └── IntervalError        intervals that no model can have were asked for: leave them out
    ├── DataError            the data cannot be used as a whole: change the data or where it is looked for
    │   └── CustomerError    one customer's data cannot be used: that customer gets a reason, the others go on
    │       └── ChangedDataError  its rows are not those that the run has planned with: resume the run
    │       └── NotLookedAtError  it could not be looked at before the run: it has no say in what is guessed
    ├── PlanError            the definition is right but cannot be run like this: change what the message names
    ├── RunError             a run cannot be started, resumed or read: the message says what to do
    │   ├── RunOwnedError    somebody else is running it: wait, or stop the other
    │   ├── OtherFormatError  another version of this program wrote it: read it with that one
    │   ├── UnknownCustomerError  there is no such customer in the run
    │   ├── UntrustedCodeError  the run brings code that somebody else wrote: allow it, or do not
    │   ├── NoModelError     the customer is there and has no model: the message says why
    │   ├── MachineError     workers, machines or Ray cannot go on: what is recorded is kept, repair and resume
    │   │   ├── RayUnavailableError  Ray does not start here, or the cluster cannot be reached
    │   │   └── HeadLostError        the head of the run's Ray has ended
    │   └── StorageError     the storage refused or lost something: nothing recorded is lost, repair and resume
    │       ├── DiskFullError    the disk is full, or the quota used up: make room, then resume
    │       └── DeletedRunError  somebody has deleted the run while it went on: start it again
    ├── StudyError           one study cannot go on: it ends with a reason, the others go on
    │   └── UnsavedModelError    its model could not be saved: remove the cause and resume the run
    └── ServiceError         the service does not do what was asked for: the message says why
        ├── MissingError         it has no such thing, or it is another team's
        ├── RefusedChangeError   what is asked for does not follow from how things are
        ├── NotAllowedError      the token's role, or the server's configuration, does not allow it
        ├── QuotaError           it would exceed a quota of the team: the message has the figures
        └── UnavailableError     it cannot at the moment: nothing was changed, try again

Each class has the exit code that a command ends with. Programs go by `code_of`, the name of the class.

`RunInterrupted` is a KeyboardInterrupt, not one of these: somebody wanted the run to stop.

Every message states the value, the rule and the way out.
"""

from __future__ import annotations

import errno
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import ClassVar, Self

from tuning.basics.documents import Json
from tuning.basics.exit_codes import ALL_WITHOUT_MODEL, ERROR, INTERRUPTED, OWNED, REFUSED, USAGE, outcome_of
from tuning.basics.wording import one_line, raised
from tuning.notes import EndCode, Note, from_plain, plain

_OWN = str(Path(__file__).parent)
FULL = (errno.ENOSPC, errno.EDQUOT)


class TuningError(Exception):
    """Base of all errors that a user can act upon.

    A notebook shows the lines of the caller and the message. Those of this program, a screen of them, say nothing to
    who reads them; `%debug` and `traceback.print_exception` have them.

    exit_code: what a command ends with. key: of the definition, or the parameter, that it is about.
    """

    exit_code: ClassVar[int] = ERROR
    key: str = ""

    @classmethod
    def about(cls, key: str, rule: str) -> Self:
        """Return an error about a key, with which its message begins."""
        error = cls(f"{key}: {rule}")
        error.key = key
        return error

    def _render_traceback_(self) -> list[str]:
        ask = getattr(sys.modules["IPython"], "get_ipython")  # noqa: B009  # a light install has no types of it
        lines: list[str] = ask().InteractiveTB.structured_traceback(type(self), self, _callers(self.__traceback__))
        return lines


def _callers(trace: TracebackType | None) -> TracebackType | None:
    """The frames before the first one of this program."""
    kept: list[tuple[FrameType, int, int]] = []
    at = trace
    while at is not None and not at.tb_frame.f_code.co_filename.startswith(_OWN):
        kept.append((at.tb_frame, at.tb_lasti, at.tb_lineno))
        at = at.tb_next
    shown: TracebackType | None = None
    for frame, instruction, line in reversed(kept):
        shown = TracebackType(shown, frame, instruction, line)
    return shown or trace


def reason_of(error: BaseException) -> Note:
    """Return the reason of what an error ends: the note that it brings, else what was raised."""
    if isinstance(error, CustomerError | NoModelError | StudyError):
        return error.note
    said = str(error) if isinstance(error, TuningError) else raised(error)
    return EndCode.RAISED(type(error).__name__, error=said)


class DefinitionError(TuningError):
    """The definition is wrong; the message names the field, its value and what is allowed."""

    exit_code = USAGE


class IntervalError(DefinitionError):
    """Intervals were asked for that no model here can have."""


class DataError(TuningError):
    """The data as a whole cannot be used (nothing matches, key column missing, …)."""

    exit_code = USAGE


class CustomerError(DataError):
    """One customer's data cannot be used; the note becomes the reason on the leaderboard."""

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.note = note


class NotLookedAtError(CustomerError):
    """A customer's rows could not be looked at before the run: `prepare` hangs on them, or ends its process."""


class ChangedDataError(CustomerError):
    """A customer's rows are not those that the run's plan knows. Its study ends for now; a resume takes it up again."""


class PlanError(TuningError):
    """The definition is valid but cannot be run like this (wrong pair of scheduler and algorithm, …)."""

    exit_code = USAGE


class RunError(TuningError):
    """A run cannot be started, resumed or read.

    reasons: what workers and machines have said of it, each shown in a line of its own.
    """

    exit_code = REFUSED

    def __init__(self, message: object = "", reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  {each}" for each in self.reasons)])


class RunOwnedError(RunError):
    """Another process owns the run."""

    exit_code = OWNED


class OtherFormatError(RunError):
    """A run directory or a saved model is in the format of another version."""


class UnknownCustomerError(RunError):
    """A customer was asked for that the run does not have."""

    exit_code = USAGE


class NoModelError(RunError):
    """A customer was asked to predict that has no model."""

    exit_code = ALL_WITHOUT_MODEL

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.note = note


class UntrustedCodeError(RunError):
    """A run brings code that its reader has not run before and does not allow."""


class StorageError(RunError):
    """The storage refused or lost something."""

    exit_code = ERROR


class DiskFullError(StorageError):
    """The storage has no room left."""


class DeletedRunError(StorageError):
    """A run's folder is not there any more."""

    exit_code = REFUSED


class MachineError(RunError):
    """Workers or machines cannot go on with a run."""

    exit_code = ERROR


class RayUnavailableError(MachineError):
    """Ray does not start, or its cluster does not answer."""


class HeadLostError(MachineError):
    """The head of the Ray that a run works on has ended."""


class StudyError(TuningError):
    """One study cannot go on; it ends with this reason and the others go on."""

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.note = note


class UnsavedModelError(StudyError):
    """A study's model could not be saved. Its study ends for now; a resume takes it up again."""


class ServiceError(TuningError):
    """The service does not do what was asked for."""


class MissingError(ServiceError):
    """The service has no such run, plan, schedule or token, or it is another team's."""


class RefusedChangeError(ServiceError):
    """What was asked for does not follow from how things are: a change of state, or a key that was used before."""


class NotAllowedError(ServiceError):
    """The token's role, or the server's configuration, does not allow it."""


class QuotaError(ServiceError):
    """It would exceed a quota of the team.

    later: seconds until there may be room again; None where waiting does not help.
    """

    def __init__(self, message: str, later: float | None = None) -> None:
        super().__init__(message)
        self.later = later


class UnavailableError(ServiceError):
    """The service cannot at the moment; nothing was changed."""


class RunInterrupted(KeyboardInterrupt):  # not an error: somebody pressed Ctrl-C
    """A run was stopped by a signal; what it recorded is kept, and the message says how to go on.

    number: of the signal. exit_code: what a command ends with, 130 for Ctrl-C and 143 for SIGTERM. result: the
    unfinished `RunResult`; None when nothing was begun.
    """

    def __init__(self, number: int, message: str = "") -> None:
        super().__init__(message or f"stopped by {signal_name(number)}")
        self.number = number
        self.result: object = None

    @property
    def exit_code(self) -> int:
        return 128 + self.number


def code_of(error: BaseException) -> str:
    """Return why something has ended, for programs: the class in words, such as `disk_full`, or `unexpected`."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.errno in FULL:
        error = DiskFullError()
    return _code(type(error)) if isinstance(error, TuningError) else "unexpected"


def _code(kind: type[TuningError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).lower()


def exit_code_of(error: BaseException) -> int | None:
    """Return what a command ends with for an error that says what to do; None for any other."""
    if isinstance(error, TuningError | RunInterrupted):
        return error.exit_code
    if isinstance(error, ValueError) and type(error).__module__.partition(".")[0] in ("search_spaces", "schedulers"):
        return USAGE  # a space's or scheduler's own word on a definition
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else None


def failure(error: BaseException) -> Mapping[str, object]:
    """Return an error as a command with `--output json` tells it, and the outcome of a run."""
    known = exit_code_of(error)
    number = ERROR if known is None else known
    return {
        "outcome": outcome_of(number),
        "exit_code": number,
        "code": code_of(error),
        "values": values_of(error),
        "reason": (str(error) or "stopped by Ctrl-C") if known is not None else one_line(error),
    }


def error_told(told: Json) -> TuningError:
    """Return the error that another process has told by `failure`; a `RunError` for what nobody foresaw."""
    note, key = (told["values"].get(name) for name in ("note", "key"))
    error = _KINDS.get(told["code"], RunError)(from_plain(note) if note else told["reason"])
    if key:
        error.key = key
    return error


def values_of(error: BaseException) -> Mapping[str, object]:
    """Return the figures, names and notes that an error holds, for programs."""
    held = {name: value for name, value in vars(error).items() if isinstance(value, int | float | str | tuple | Note)}
    return {name: plain(value) for name, value in held.items() if value != ()}


#: The classes by their codes.
_KINDS: Mapping[str, type[TuningError]] = {
    _code(kind): kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, TuningError)
}


def signal_name(number: int) -> str:
    """As a person calls it."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
