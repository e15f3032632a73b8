"""Process-wide random states lent to a library that insists on them, and put back afterwards."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# Whatever each library's getter returns and its setter takes back.
States = dict[str, Any]


def load(modules: Iterable[str]) -> None:
    """Imports modules without a trace in the process's random states (Nevergrad's import draws from NumPy's)."""
    for module in modules:
        if module not in sys.modules:
            before = _read("torch" in sys.modules)
            try:
                import_module(module)
            finally:
                _write(before)


def _read(torch: bool) -> States:
    import numpy as np

    states: States = {"random": random.getstate(), "numpy": np.random.get_state()}
    if torch:
        states["torch"] = sys.modules["torch"].get_rng_state()
    return states


def _write(states: States) -> None:
    import numpy as np

    random.setstate(states["random"])
    np.random.set_state(states["numpy"])
    if "torch" in states:
        sys.modules["torch"].set_rng_state(states["torch"])


class OwnedState:
    """The process-wide generators of `random`, NumPy and (where it is loaded) PyTorch as one study sees them.

    Inside `with state.lent():` they continue where this study left them; outside, the process has its own
    back.

    Args:
        seed: 32 bits.
        torch: whether the library uses PyTorch.
    """

    def __init__(self, seed: int, torch: bool = False) -> None:
        import numpy as np

        self._torch = torch
        self._states: States = {
            "random": random.Random(seed).getstate(),
            "numpy": np.random.RandomState(seed).get_state(),
        }
        if torch:
            library = import_module("torch")
            self._states["torch"] = library.Generator().manual_seed(seed).get_state()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """The study's own states are the process's for the length of the block."""
        outside = _read(self._torch)
        _write(self._states)
        try:
            yield
        finally:
            self._states = _read(self._torch)
            _write(outside)
