"""How many trials a run may have, where somebody else limits it, such as a service for a team."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tuning.errors import PlanError

if TYPE_CHECKING:  # a server reads the name of the variable alone
    from tuning.study.study import StudyTable

VARIABLE = "TUNING_MOST_TRIALS"  # in the environment; absent or empty for no limit


def check_allowance(studies: StudyTable) -> None:
    """`PlanError` where the studies have more trials together than this process's environment allows."""
    allowed = os.environ.get(VARIABLE)
    trials = int(studies.numbers("n_trials").sum()) if allowed else 0
    if allowed and trials > int(allowed):
        raise PlanError(
            f"the run has {trials:,} trials in {len(studies):,} studies, and {int(allowed):,} are allowed in one run "
            f"({VARIABLE}). Lower `trials`, or take fewer customers."
        )
