"""What the theorems promise for gradient descent, as functions.

For f convex and L-smooth (and m-strongly convex where m > 0: f − ½m‖·‖² is convex), D = ‖w₀ − w*‖,
a fixed step t gives

    t ≤ 1/L                     f(w_k) − f* ≤ D² / (2tk)                             (thm 8.5)
    t ≤ 2/(m + L)               f(w_k) − f* ≤ (L/2) γ^k D²,  γ = 1 − 2tmL/(m + L)    (thm 8.7)
    not convex, t ≤ 1/L         min_i ‖∇f(w_i)‖ ≤ √(2(f(w₀) − f*)/(t(k + 1)))        (thm 8.8)
    Nesterov momentum           f(w_k) − f* ≤ 2L·D² / (k + 1)²
    the same, m > 0             f(w_k) − f* ≤ L·D²·(1 − √(m/L))^k

At t = 2/(m + L) the distance to the optimum shrinks by q = (κ − 1)/(κ + 1) in each step, γ = q²,
with κ = L/m. Since ‖∇f‖² ≤ 2L(f − f*), each bounds the number of steps until ‖∇f‖ ≤ ε. The proximal
methods keep the convex bounds (Beck and Teboulle, 2009); with backtracking by halves L counts
double. The perceptron makes at most (C/γ)² mistakes on samples of norm ≤ C with margin γ.
Reference: Nesterov, Introductory Lectures on Convex Optimization (2004), §2.1–2.2.
"""

import math

__all__ = [
    "convex_bound",
    "iteration_bound",
    "momentum_bound",
    "non_convex_bound",
    "perceptron_bound",
    "strongly_convex_bound",
]


def convex_bound(k: int, lipschitz: float, distance: float, *, step: float | None = None) -> float:
    """f(w_k) − f* on a convex function: D²/(2tk), by default for the step t = 1/L.

    >>> convex_bound(10, 2.0, 1.0), convex_bound(10, 2.0, 1.0, step=0.25)
    (0.1, 0.2)
    """
    reach = lipschitz * distance**2 if step is None else distance**2 / step
    return reach / (2 * max(k, 1))


def strongly_convex_bound(
    k: int, lipschitz: float, convexity: float, distance: float, *, step: float | None = None
) -> float:
    """f(w_k) − f*: (L/2)·γ^k·D², by default for the step t = 2/(m + L), where γ = q².

    >>> strongly_convex_bound(1, 3.0, 1.0, 2.0)
    1.5
    """
    kappa = lipschitz / convexity
    ratio = ((kappa - 1) / (kappa + 1)) ** 2
    if step is not None:
        ratio = max(0.0, 1 - 2 * step * convexity * lipschitz / (convexity + lipschitz))
    return 0.5 * lipschitz * ratio**k * distance**2


def non_convex_bound(k: int, lipschitz: float, gap: float, *, step: float | None = None) -> float:
    """min_i ‖∇f(w_i)‖ on any smooth function: √(2·gap/(t(k + 1))), by default for t = 1/L.

    >>> non_convex_bound(3, 2.0, 1.0)
    1.0
    """
    length = 1.0 / lipschitz if step is None else step
    return math.sqrt(2 * gap / (length * (k + 1)))


def perceptron_bound(radius: float, margin: float) -> float:
    """Most mistakes of the perceptron: (C/γ)², infinite where nothing separates (γ ≤ 0).

    Args:
        radius: C, the largest ‖x_i‖, the intercept's 1 among the entries where there is one.
        margin: γ = min y_i⟨w*, x_i⟩ of some separating w* with ‖w*‖ = 1; the widest is the best.

    >>> perceptron_bound(2.0, 0.5)
    16.0
    """
    return (radius / margin) ** 2 if margin > 0 else math.inf


def momentum_bound(k: int, lipschitz: float, convexity: float, distance: float) -> float:
    """f(w_k) − f* for Nesterov's method, the better of its two theorems."""
    general = 2 * lipschitz * distance**2 / (k + 1) ** 2
    if convexity <= 0:
        return general
    rate = 1 - math.sqrt(min(convexity / lipschitz, 1.0))
    return min(general, lipschitz * distance**2 * rate**k) if rate > 0 else 0.0


def iteration_bound(
    lipschitz: float, convexity: float, distance: float, tolerance: float, *, momentum: bool
) -> float:
    """Steps after which ‖∇f(w_k)‖ ≤ tolerance is guaranteed; infinite when nothing is.

    >>> iteration_bound(1.0, 1.0, 1.0, 1e-6, momentum=False)
    1
    >>> slow = iteration_bound(1.0, 1e-4, 1.0, 1e-6, momentum=False)
    >>> slow > 20 * iteration_bound(1.0, 1e-4, 1.0, 1e-6, momentum=True)
    True
    """
    start = lipschitz * distance  # ‖∇f(w₀)‖ ≤ L·D
    if start <= tolerance:
        return 0
    if tolerance <= 0:
        return math.inf
    ratio = start / tolerance
    steps = 2 * ratio if momentum else ratio * ratio
    if convexity > 0:
        steps = min(steps, _contracting(lipschitz / convexity, ratio, momentum=momentum))
    return max(1, math.ceil(steps)) if math.isfinite(steps) else math.inf


def _contracting(kappa: float, ratio: float, *, momentum: bool) -> float:
    """Steps until a geometric rate has shrunk L·D by `ratio`."""
    if kappa <= 1:
        return 1.0
    if momentum:
        return 2 * math.log(math.sqrt(2) * ratio) / -math.log1p(-1 / math.sqrt(kappa))
    # log((κ + 1)/(κ − 1)), which rounds to log 1 when κ is large
    return math.log(ratio) / (2 * math.atanh(1 / kappa))
