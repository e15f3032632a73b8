"""Models that stay in memory between questions, up to a size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from tuning.models.customer_model import CustomerModel

#: Bytes of a model that are not in its files: its encoder, its columns, objects.
OVERHEAD = 50_000

K = TypeVar("K", bound=Hashable)


class KeptModels(Generic[K]):
    """Loads each model once; where all of them are larger than they may be, who was asked for longest ago goes.

    most: bytes, as the models' files tell them. load: makes the model of a key; what it raises is passed on.
    """

    def __init__(self, most: int, load: Callable[[K], CustomerModel]) -> None:
        self._most, self._load = most, load
        self._models: OrderedDict[K, CustomerModel] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._models)

    def get(self, key: K) -> CustomerModel:
        """Return the model of a key. Two threads that ask for it at once may both load it."""
        with self._lock:
            found = self._models.get(key)
            if found is not None:
                self._models.move_to_end(key)
                return found
        model = self._load(key)
        with self._lock:
            if key not in self._models:
                self._models[key] = model
                self._size += model.size + OVERHEAD
            while self._size > self._most and len(self._models) > 1:
                _, oldest = self._models.popitem(last=False)
                self._size -= oldest.size + OVERHEAD
        return model
