"""What a user chooses of a refresh."""

from __future__ import annotations

from dataclasses import dataclass

from tuning.basics.wording import did_you_mean
from tuning.champions.rules import promotion_rules
from tuning.errors import DefinitionError


@dataclass(frozen=True)
class RefreshOptions:
    """How champions are kept.

    Attributes:
        promotion: a rule of `tuning/champions/rules/`.
        false_discoveries: which share of the promoted may be no better.
        least_gain: by which share of the champion's loss a challenger must be better.
        search_every: refreshes after which a customer with other rows is tuned again.
        grown: share of rows more since its last search, from which it is tuned again.
        drift_tolerance: by which share of its promise a champion may be worse on new rows before it is tuned anew.
        retire: whether customers that are not in the data any more lose their champions.
        stand: refreshes for which a challenger stands at least, before another one may take its place.
    """

    promotion: str = "sure"
    false_discoveries: float = 0.1
    least_gain: float = 0.0
    search_every: int = 4
    grown: float = 0.25
    drift_tolerance: float = 0.2
    stand: int = 8
    retire: bool = False

    def __post_init__(self) -> None:
        if self.promotion not in promotion_rules():
            rules = promotion_rules()
            raise DefinitionError(
                f"promotion: {self.promotion!r} is no rule.{did_you_mean(self.promotion, rules)} There are: "
                f"{', '.join(rules)}."
            )
        for name, value, low, high in (
            ("false_discoveries", self.false_discoveries, 0.0, 0.5),
            ("least_gain", self.least_gain, 0.0, 1.0),
            ("drift_tolerance", self.drift_tolerance, 0.0, 100.0),
        ):
            if not low <= value < high:
                raise DefinitionError(f"{name}: {value:g} must be at least {low:g} and below {high:g}.")
