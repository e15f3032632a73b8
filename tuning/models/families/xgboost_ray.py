"""XGBoost on several processes through XGBoost-Ray: parameters, steps and saved models are those of `xgboost`.

Each trial is trained by the actors that its configuration says (`tuning.models.worker_group`), two where it says
nothing. The folds of a trial are trained at the same time, each by XGBoost-Ray's actors of its own, which share the
bundles.
"""

from __future__ import annotations

from tuning.basics.environment import installed_version
from tuning.models.base import Config
from tuning.models.families.xgboost import XGBoostFamily
from tuning.models.worker_group import ActorGroup

VERSIONS = {"xgboost": "3.2.", "xgboost_ray": "0.1.19"}
NAMES = {"xgboost": ("xgboost", "xgboost-cpu")}  # of packages that have several


def unsuitable() -> str:
    """Return why this cannot work here, as a sentence: a library that is missing or of another version; else empty."""
    for package, wanted in VERSIONS.items():
        found = installed_version(*NAMES.get(package, (package,)))
        if not found.startswith(wanted):
            have = f"{found} is installed" if found else "it is not installed"
            pinned = f"{wanted}*" if wanted.endswith(".") else wanted
            return f"'xgboost_ray' works with {package} {pinned}, and {have}: pip install '{package}=={pinned}'."
    return ""


class XGBoostRayFamily(XGBoostFamily):
    name = "xgboost_ray"
    groups_read_files = True

    def untrainable(self) -> str:
        return unsuitable()

    def worker_group(self, config: Config) -> ActorGroup:
        return ActorGroup.of(config)


FAMILY = XGBoostRayFamily()
