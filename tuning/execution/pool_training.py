"""The training of a run's pool, before its studies: what the worker does that has it trained."""

from __future__ import annotations

from tuning.basics.columnar import Columnar
from tuning.basics.seeds import derive
from tuning.basics.wording import raised
from tuning.data.customers import one_each
from tuning.errors import CustomerError
from tuning.evaluation.pooling import MOST_ROWS, MOST_ROWS_EACH, PoolRows, fitted_pool
from tuning.execution.context import WorkerContext, WorkerRun
from tuning.runs.plan_file import read_plan
from tuning.runs.pool_file import pool_settled, write_pool
from tuning.study.study import customers_of
from tuning.user_code import own_settings


def train_pool(run: WorkerRun) -> None:
    """Train a run's pool of its customers' rows and settle it in the run directory, unless it is settled.

    A customer whose rows cannot be used is left out with the reason, which its own study will find, too.
    """
    directory = run.directory
    if pool_settled(directory):
        return
    plan = read_plan(directory, run.term, run.spec)
    seed = plan.spec.definition.seed
    customers = one_each(customers_of(Columnar.joined([plan.studies, plan.ended])))
    names = customers.texts("id").to_pylist()
    order = sorted(range(len(names)), key=lambda place: derive(seed, "pool", names[place]))  # of very many a sample
    context = WorkerContext.open(directory, plan.run, plan.spec)
    found: dict[str, PoolRows] = {}
    left_out: dict[str, str] = {}
    rows = 0
    for place in order:
        if rows >= MOST_ROWS:
            break
        name = names[place]
        with own_settings():
            try:
                found[name] = PoolRows.of(context.customers.prepared(customers[place]))
            except CustomerError as error:
                left_out[name] = str(error)
            except (Exception, SystemExit) as error:  # of the user's `prepare`
                left_out[name] = raised(error)
            else:
                rows += min(len(found[name].search), MOST_ROWS_EACH)
    with own_settings():
        write_pool(directory, fitted_pool(dict(sorted(found.items())), left_out, seed))
