"""Replace each sentence of the catalogue of notes by its code, in this process and in those that it starts.

`make codes` runs the tests like that: nothing that a run decides may change.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

CATALOGUE = "tuning.notes.note"


class _CodesForWords(MetaPathFinder):
    """Finds the module that makes sentences, and replaces what makes them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != CATALOGUE:
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(fullname)
        assert found is not None
        assert found.loader is not None
        found.loader = _Replacing(found.loader)
        return found


class _Replacing(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        vars(module)["sentence"] = lambda text, note: note.code.id if text else ""


sys.meta_path.insert(0, _CodesForWords())
