"""What came of a driver, and what becomes of its run: by its exit code and what it has said."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuning.basics.documents import Json
from tuning.basics.exit_codes import ALL_WITHOUT_MODEL, OWNED, REFUSED, SOME_WITHOUT_MODEL, USAGE
from tuning.basics.wording import amount, duration, kinds_text, shorten
from tuning.service.database.runs import SubmittedRun
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState
from tuning.service.supervisor.drivers import Gone
from tuning.service.supervisor.outages import Outages

ENDED_BY_ITSELF = (0, SOME_WITHOUT_MODEL, ALL_WITHOUT_MODEL)
WRONG = (USAGE, REFUSED)  # the user's matter: no other try would end differently
PAUSES_S = (10.0, 60.0, 300.0)  # before each further try of a run that the machine has failed
OWNED_S = 60.0  # before the next look whether somebody else still runs it
LONGEST = 2_000


@dataclass(frozen=True)
class NextState:
    """The next state of a run, its reason, and further columns."""

    to: RunState
    reason: str
    values: Mapping[str, object] = field(default_factory=dict)


def next_state(run: SubmittedRun, gone: Gone, settings: ServiceSettings, now: float, outages: Outages) -> NextState:
    """Return the next state of a run after the end of its driver. outages: is told of a failure of the machine."""
    names = settings.names(run.team, run.run_directory)
    told: Json = names.document(gone.told)
    shown = str(gone.told.get("reason") or gone.reason)
    said = shorten(names.text(shown.replace(run.run_directory, f"run {run.id}")), LONGEST)
    values = {"outcome": told or None}
    if run.state is RunState.STOPPING and run.ending == RunState.CANCELLED:
        return NextState(RunState.CANCELLED, _how(gone.code, "cancelled"), values)
    if gone.code in ENDED_BY_ITSELF:
        return NextState(RunState.FINISHED, _summary(told), values)
    if gone.code in WRONG:
        return NextState(RunState.FAILED, said or f"its process ended with {gone.code}", values)
    if run.state is RunState.STOPPING:
        return NextState(RunState.STOPPED, _how(gone.code, "stopped"), values)
    if gone.code == OWNED:
        reason = f"{said or 'another process runs it'} (looked at again in {duration(OWNED_S)})"
        return NextState(RunState.QUEUED, reason, {"not_before": now + OWNED_S})
    reason = _machine_failed(gone, said)
    if outages.failed(run.id, str(told.get("code") or "")):
        return NextState(
            RunState.QUEUED, f"{reason}; other runs have failed alike, so this was no try of its own", values
        )
    if run.attempts >= len(PAUSES_S):
        tries = f"{reason}. It was tried again {amount(len(PAUSES_S), 'time')}. Resume it when the cause is gone."
        return NextState(RunState.FAILED, tries, values)
    pause = PAUSES_S[run.attempts]
    reason = f"{reason}; tried again in {duration(pause)} (try {run.attempts + 1} of {len(PAUSES_S)})"
    return NextState(RunState.QUEUED, reason, {"attempts": run.attempts + 1, "not_before": now + pause})


def _machine_failed(gone: Gone, said: str) -> str:
    if gone.code is None:
        return said or "its process is gone, and nobody saw it end (the machine was started anew, or it was killed)"
    if gone.code == -signal.SIGKILL:
        return gone.reason or "its process was killed, such as for want of memory"
    number = -gone.code if gone.code < 0 else gone.code - 128
    if gone.code < 0 or number in (signal.SIGINT, signal.SIGTERM):
        return f"its process was ended by {signal.Signals(number).name}, for which nobody has asked here"
    return said.rstrip(".") or f"its process ended with {gone.code} and said nothing"


def _how(code: int | None, word: str) -> str:
    if code in ENDED_BY_ITSELF:
        return f"{word}; its work was done already"
    if code == -signal.SIGKILL:
        return f"{word} by SIGKILL, as it had not ended when asked; what was recorded is kept"
    return f"{word} on request; what was recorded is kept"


def _summary(told: Json) -> str:
    if "succeeded" not in told:
        return ""
    text = f"{told['succeeded']:,} of {amount(told['customers'], 'customer')} have a model"
    if missing := told.get("not_copied"):
        text += f"; the copy in MLflow lacks {kinds_text(missing)}: resume the run once MLflow answers"
    return text
