"""The one error of this package: a space, a point or an option that cannot be used, and the way out."""

from __future__ import annotations


class SpaceError(ValueError):
    """A space, a configuration or an algorithm's option is wrong; its author edits, a retry never helps.

    Attributes:
        path: where the mistake is, as in ``parameters.alpha.low``; empty for a mistake of the whole.
    """

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}" if path else problem)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.problem, self.path))  # crosses process borders with its path

    def under(self, prefix: str) -> SpaceError:
        """The same mistake seen from one level further out."""
        return SpaceError(self.problem, path=f"{prefix}.{self.path}" if self.path else prefix)


def _rebuild(problem: str, path: str) -> SpaceError:
    return SpaceError(problem, path=path)


def nearest(word: object, valid: list[str]) -> str:
    """`` (did you mean 'x'?)`` for the valid name nearest to a misspelt one, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(str(word), valid, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
