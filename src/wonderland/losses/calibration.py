"""Classification calibration, checked on numbers.

With η = P(y = +1 | x) a prediction z has the conditional risk C_η(z) = η ℓ(z, +) + (1 − η) ℓ(z, −).
The loss is classification-calibrated when for every η ≠ ½ a prediction of the wrong sign, or of
none, costs more than the best one:

    inf { C_η(z) : z(2η − 1) ≤ 0 }  >  inf_z C_η(z) .

Then a small surrogate risk forces a small 0/1 risk, over all functions of x; a family of functions
that does not hold the best one, such as the linear ones, is promised nothing. For convex φ this is
so exactly if φ is differentiable at 0 and φ'(0) < 0. Reference: Bartlett, Jordan and McAuliffe,
Convexity, Classification, and Risk Bounds (2006), theorem 2.
"""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError
from wonderland.losses.loss import Loss

__all__ = ["calibrated", "excess_risk"]

LIKELIHOODS = (0.01, 0.1, 0.25, 0.4, 0.45, 0.49, 0.51, 0.55, 0.6, 0.75, 0.9, 0.99)
FIRST = {"signs": (1, -1), "numbers": (1, -1), "bits": (1, 0), "classes": (1, 0)}


def calibrated(loss: Loss) -> bool:
    """Whether a wrong sign costs more than the best prediction at every likelihood tried.

    A loss of numbers is read as one of targets ±1, the cross-entropy as one of two classes.

    >>> from wonderland.losses import Hinge, Perceptron
    >>> calibrated(Hinge()), calibrated(Perceptron())
    (True, False)
    """
    return all(excess_risk(loss, likelihood) > 1e-9 for likelihood in LIKELIHOODS)


def excess_risk(loss: Loss, likelihood: float) -> float:
    """inf over wrong signs of C_η minus inf over all predictions, on a fine grid of both signs.

    >>> from wonderland.losses import Hinge
    >>> excess_risk(Hinge(), 0.75)
    0.5
    """
    if not 0 <= likelihood <= 1 or likelihood == 0.5:
        raise InputError(
            f"likelihood is {likelihood!r}",
            "a number from 0 to 1 other than ½, where no sign is wrong",
            "Pass for instance likelihood=0.75",
        )
    size = np.concatenate([np.geomspace(1e-9, 1e3, 4001), np.linspace(0.001, 4.0, 4000)])
    z = np.concatenate([-size, [0.0], size])
    positive, negative = (_values(loss, z, y) for y in FIRST[loss.targets])
    risk = likelihood * positive + (1 - likelihood) * negative
    wrong = z * (2 * likelihood - 1) <= 0
    return float(risk[wrong].min() - risk.min())


def _values(loss: Loss, z: np.ndarray, y: int) -> Any:
    target = np.full(len(z), y)
    if loss.targets == "classes":
        return loss.value(np.column_stack([-0.5 * z, 0.5 * z]), target)
    return loss.value(z, target)
