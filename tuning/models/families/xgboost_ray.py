"""XGBoost on several processes through XGBoost-Ray: parameters, steps and saved models are those of `xgboost`.

Each trial is trained by the actors that its configuration says (`tuning.models.gang`), two where it says nothing. The
folds of a trial are trained at the same time, each by XGBoost-Ray's actors of its own, which share the bundles.
"""

from __future__ import annotations

from collections.abc import Sequence

from tuning.models.base import Hyperparameters
from tuning.models.families.xgboost import XGBoostFamily
from tuning.models.gang import Gang
from tuning.models.gang_training import GangTraining, TrainingJob
from tuning.models.shards import GangPlace
from tuning.models.xgboost_ray_adapter import Folds, unsuitable


class XGBoostRayFamily(XGBoostFamily):
    name = "xgboost_ray"
    gangs_read_files = True

    def untrainable(self) -> str:
        return unsuitable()

    def gang(self, config: Hyperparameters) -> Gang:
        return Gang.of(config)

    def start(self, works: Sequence[TrainingJob], gang: Gang, place: GangPlace) -> GangTraining:
        return Folds(works, gang, place)


FAMILY = XGBoostRayFamily()
