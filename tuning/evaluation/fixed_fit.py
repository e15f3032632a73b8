"""The model of a fixed configuration: each member is fitted once, on all rows, or on those of a search alone.

On all rows nothing is left that could score it. On the rows of a search the hold-out scores it as it would a winner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tuning.errors import CustomerError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import PooledAnswers
from tuning.evaluation.pooling import pooled_answers
from tuning.evaluation.refit import Refit, fitted_member, refitted
from tuning.evaluation.scored_model import model_of, on_hold_out
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.models.customer_model import ALL_ROWS
from tuning.models.member import Member
from tuning.models.pooled import POOL_FORMS
from tuning.notes import FitCode, PoolCode
from tuning.notes.note import ordered


def fit_fixed(
    fixed: FixedConfiguration,
    data: StudyData,
    metric: Metric,
    customer: str,
    *,
    all_rows: bool,
    alive: Callable[[], None] = lambda: None,
) -> StudyOutcome:
    """The outcome of a study with a fixed configuration. `CustomerError` where the pool is a member and not there.

    all_rows: fit on the hold-out rows, too. alive: called before each fit.
    """
    if fixed.pooled:
        alive()
        data = replace(data, pooled=_answers_of_the_pool(fixed, data, customer))
    outcome, members, found = StudyOutcome(None, None, fixed=fixed), list[Member](), list[Refit]()
    for each in fixed.members:
        alive()
        if all_rows:
            members.append(fitted_member(each, data, all_rows=True))
        else:
            found.append(refitted(each, data))
    if all_rows:
        model = replace(model_of(members, data, customer, None), final_fit=ALL_ROWS)
        return replace(outcome, model=model, notes=ordered([FitCode.NOT_SEARCHED(), *data.notes]))
    members, said = [each.member for each in found], [each.prediction for each in found]
    outcome, _ = on_hold_out(outcome, members, said, None, data, metric, customer)
    notes = ordered([FitCode.NOT_SEARCHED(), *data.notes, *outcome.notes])
    return replace(outcome, notes=notes, refit_seconds=sum(each.fit_seconds for each in found))


def _answers_of_the_pool(fixed: FixedConfiguration, data: StudyData, customer: str) -> tuple[PooledAnswers, ...]:
    found = () if data.pool is None or data.rows is None else pooled_answers(data.pool, data, customer)
    wanted = {each.family for each in fixed.members if each.family in POOL_FORMS}
    if wanted - {each.member.family for each in found}:
        raise CustomerError(PoolCode.NO_POOL_MEMBER(why=None if data.pool is None else data.pool.without))
    return found
