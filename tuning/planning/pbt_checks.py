"""Population-based training, checked before anything runs: can models be taken over, is there anything to vary?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from schedulers import SchedulerSpec
from search_spaces import SearchSpace
from tuning.data.prepared import OwnCode
from tuning.errors import PlanError
from tuning.evaluation.objective import takes_state
from tuning.models.base import SteppedFamily
from tuning.models.log_target import TARGET
from tuning.models.registry import family as find_family
from tuning.planning.model_space import MODEL, parameters_by_model
from tuning.study.mutations import mutations


def check_population(specs: Sequence[SchedulerSpec], space: SearchSpace, code: OwnCode) -> None:
    """Refuse with a `PlanError` a scheduler whose trials take over models where none can, or nothing can change.

    specs: of the studies, each once.
    """
    for spec in specs:
        if not spec.needs_state:
            continue
        if code.objective is not None and not takes_state(code.objective):
            raise PlanError(
                f"scheduler {spec.name!r} copies models between trials, and the objective cannot continue from a "
                "copy: it has no parameter `state` (docs/objectives.md). Add it, or use another scheduler, such as "
                "asha."
            )
        names = parameters_by_model(space)
        races: list[tuple[dict[str, Any], Collection[str]]] = [({MODEL: name}, ()) for name in names] or [({}, ())]
        if code.objective is None:
            found = {name: code.families.get(name) or find_family(name) for name in names}
            stepped = {name: family for name, family in found.items() if isinstance(family, SteppedFamily)}
            races = [({MODEL: name}, family.frozen | {family.length, TARGET}) for name, family in stepped.items()]
        if not any(spec.usable(mutations(space, config, frozen, MODEL)) for config, frozen in races):
            what = "number" if spec.name == "pb2" else "hyperparameter"
            raise PlanError(
                f"scheduler {spec.name!r} changes a {what} while a model trains, and this search space has none that "
                "could change (models that train at once, without steps, cannot). Use another scheduler, such as asha."
            )
