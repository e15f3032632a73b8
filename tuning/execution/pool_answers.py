"""The run's pool in place of a model of the customer's own, saved as one."""

from __future__ import annotations

from tuning.data.customers import Customer
from tuning.errors import StorageError, reason_of
from tuning.evaluation.stand_in import LEAST_ROWS, is_typical, stand_in
from tuning.execution.context import WorkerContext
from tuning.models.customer_model import CustomerModel, Saved
from tuning.notes import Note, PoolCode
from tuning.storage.names import slug
from tuning.study.study import Study


def asked_pool(
    context: WorkerContext, customer: Customer, reason: Note | None
) -> tuple[CustomerModel | None, Note | None]:
    """The pool as the model of a customer, whose rows are read for that, and a note why it cannot be.

    reason: why there is no own model, which needs no second note.
    """
    pool, customers = context.customers.pool, context.customers
    if pool is None or pool.typical is None or not context.spec.definition.save_models:
        return None, None
    try:
        rows = customers.rows(customer)
        frame = customers.code.frame(rows, customer.id)
        found = stand_in(pool, customer.id, context.spec.definition, frame, customers.code.preparation(rows))
    except StorageError:
        raise
    except (Exception, SystemExit) as error:  # of the rows, or of the user's `prepare`
        why = reason_of(error)
        return None, None if why == reason else PoolCode.POOL_NOT_ASKED(why=why)
    typical = isinstance(found, CustomerModel) and is_typical(found, pool)
    return found, PoolCode.POOL_TYPICAL_UNIT(least=LEAST_ROWS) if typical else None


def saved_without_rows(context: WorkerContext, study: Study) -> Saved | None:
    """The pool as the model of a customer whose rows are not read: reading them again may end this process, too."""
    pool, definition = context.customers.pool, context.spec.definition
    if pool is None or definition.prepare is not None or not definition.save_models:
        return None
    model = stand_in(pool, study.customer.id, definition)
    if model is None:
        return None
    saved = model.save(context.background, context.background.folder("models", slug(study.id)))
    context.background.flush()
    return saved
