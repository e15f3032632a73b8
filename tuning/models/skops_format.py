"""The safe format of scikit-learn models: skops, through our own list of types; nothing is ever unpickled."""

from __future__ import annotations

import io
import re
import zipfile

from tuning.errors import RunError
from tuning.models import skops_pattern

# What fitted estimators of the built-in families are made of and skops 0.16 does not trust by itself.
TRUSTED = (
    "functools.partial",  # what it calls must be on the list too
    "numpy.dtype",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogLink",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.AbsoluteError",
    "sklearn._loss.loss.ExponentialLoss",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfGammaLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn._loss.loss.HalfPoissonLoss",
    "sklearn._loss.loss.HalfSquaredError",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn._loss.loss.HuberLoss",
    "sklearn._loss.loss.PinballLoss",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.DotProduct",
    "sklearn.gaussian_process.kernels.Matern",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.RationalQuadratic",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._dist_metrics.ChebyshevDistance64",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
)


#: What a schema says of types, and the sets of it that were checked already.
_NAMED = re.compile(rb'"(?:__class__|__module__|__loader__|module_path|function)": "[^"]*"')
_checked: set[frozenset[bytes]] = set()


def dump_skops(model: object) -> bytes:
    """Return a scikit-learn object in skops' format; a type outside the list is refused already here."""
    return skops_pattern.dump(model, _dump_in_full)


def _dump_in_full(model: object) -> bytes:
    import skops.io

    content = skops_pattern.rewritten(skops.io.dumps(model))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        named = frozenset(_NAMED.findall(archive.read(skops_pattern.SCHEMA)))
    if named not in _checked:  # a check takes half as long as writing
        _check_types(content)
        _checked.add(named)
    return content


def load_skops(content: bytes) -> object:
    """Return a scikit-learn object, if it consists of trusted types only."""
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        return skops.io.loads(content, trusted=list(TRUSTED))
    except UntrustedTypesFoundException:
        _check_types(content)
        raise
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _foreign(error) from error


def _check_types(content: bytes) -> None:
    import skops.io

    try:
        needed = skops.io.get_untrusted_types(data=content)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _foreign(error) from error
    foreign = sorted(set(needed) - set(TRUSTED))
    if foreign:
        raise RunError(
            f"a model file holds the types {', '.join(foreign)}, which are not on the list of trusted types."
        )


def _foreign(error: Exception) -> RunError:
    return RunError(f"a model file was not written by this program: {type(error).__name__}: {error}")
