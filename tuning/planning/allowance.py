"""What a run may have, where somebody else limits it, such as a service: trials, and its part of the memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.errors import PlanError

if TYPE_CHECKING:  # a server reads the name of the variable alone
    from tuning.study.study import StudyTable

VARIABLE = "TUNING_MOST_TRIALS"  # in the environment; absent or empty for no limit

SLOTS_VARIABLE = "TUNING_MACHINE_SLOTS"  # those of all runs that share this machine's memory; absent for this run's


def slots_beside(own: int) -> int:
    """How many slots share this machine's memory. own: those of this run on it."""
    return max(1, own, int(os.environ.get(SLOTS_VARIABLE) or 0))


def check_allowance(studies: StudyTable) -> None:
    """`PlanError` where the studies have more trials together than this process's environment allows."""
    allowed = os.environ.get(VARIABLE)
    trials = int(studies.numbers("n_trials").sum()) if allowed else 0
    if allowed and trials > int(allowed):
        raise PlanError(
            f"the run has {amount(trials, 'trial')} in {amount(len(studies), 'study')}, and {int(allowed):,} are "
            f"allowed in one run ({VARIABLE}). Lower `trials`, or take fewer customers."
        )
