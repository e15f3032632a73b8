"""Classes in front of Ray's, without importing Ray before the first one is needed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
else:
    TrialScheduler = object  # Ray's class is added below it when the first one is built


class InFrontOfRay(TrialScheduler):
    """A class whose Ray base is added when the first instance is made (`in_front_of_ray`).

    Instances pickle by reference to their own class.
    """

    #: Dotted name of the Ray class.
    ray_class: ClassVar[str]
    #: The class that was put in front of it; `in_front_of_ray` sets it.
    logic: ClassVar[type]

    def __reduce__(self) -> tuple[object, ...]:
        return _empty, (self.logic,), self.__dict__


Logic = TypeVar("Logic", bound=InFrontOfRay)


def in_front_of_ray(logic: type[Logic]) -> type[Logic]:
    """The class that is `logic` in front of the Ray class it refines."""
    found: type[Logic] = _combined(logic)  # type: ignore[arg-type]  # mypy looks at the instances' __hash__
    return found


@cache
def _combined(logic: Any) -> Any:
    module, _, name = logic.ray_class.rpartition(".")
    base = getattr(importlib.import_module(module), name)
    namespace = {"__module__": logic.__module__, "__doc__": logic.__doc__, "logic": logic}
    return type(logic.__name__, (logic, base), namespace)


def _empty(logic: type[Logic]) -> Logic:
    """An instance to be filled with a pickled state."""
    return object.__new__(in_front_of_ray(logic))
