"""What may vary, and which point is tried next: search spaces and the algorithms that walk them.

A `SearchSpace` holds named parameters, conditional ones included, and belongs to no library. `presets` are
ready-made spaces per model family, `algorithms` turn a space into a searcher with Ray Tune's
interface. Importing this package imports neither Ray nor NumPy nor any algorithm's library.
"""

from __future__ import annotations

from search_spaces import algorithms, presets
from search_spaces.errors import SpaceError
from search_spaces.parameters import Choice, Constant, Float, Int, Parameter
from search_spaces.schema import json_schema
from search_spaces.space import SearchSpace

__all__ = [
    "Choice",
    "Constant",
    "Float",
    "Int",
    "Parameter",
    "SearchSpace",
    "SpaceError",
    "algorithms",
    "json_schema",
    "presets",
]
