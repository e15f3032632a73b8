"""The names that a team has for what is on the server: files below its folders, and runs."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

T = TypeVar("T")


@dataclass(frozen=True)
class Names:
    """Replaces the server's folders in what a team reads. folders: absolute paths and URIs."""

    folders: frozenset[str] = frozenset()

    def text(self, text: str) -> str:
        """Return a text, HTML or JSON with names in place of paths; the last name is left of a folder alone."""
        if "/" not in text:
            return text
        return self._paths.sub(lambda found: "" if found[2] is None else os.path.basename(found[1]), text)

    def document(self, value: T) -> T:
        """Return a document with names in place of paths; a text that is a folder becomes `.`, as a definition has it.

        Keys stay: they are names of customers.
        """
        return cast(T, self._document(value))

    def _document(self, value: object) -> object:
        if isinstance(value, str):
            return "." if value in self.folders else self.text(value)
        if isinstance(value, Mapping):
            return {name: self._document(inner) for name, inner in value.items()}
        return [self._document(inner) for inner in value] if isinstance(value, list | tuple) else value

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        """A folder, and what says that it is not followed by a name in it."""
        forms = {form for text in self.folders for form in (text, html.escape(text), json.dumps(text)[1:-1])}
        folders = "|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or "(?!)"
        return re.compile(rf"(?<![\w.-])({folders})(?:/(?=[^\s'\"`),;&<])|(/?(?![\w-]|\.\w)))")


AS_THEY_ARE = Names()
