"""What the theorems promise for gradient descent, as functions.

For f convex and L-smooth (and m-strongly convex where m > 0), D = ‖w₀ − w*‖, gradient descent gives

    fixed step 1/L              f(w_k) − f* ≤ L·D² / (2k)                            (thm 8.5)
    step 2/(m + L)              ‖w_k − w*‖ ≤ q^k·D,  q = (κ − 1)/(κ + 1)              (thm 8.7)
    not convex, step 1/L        min_i ‖∇f(w_i)‖ ≤ √(2L(f(w₀) − f*)/(k + 1))           (thm 8.8)
    Nesterov momentum           f(w_k) − f* ≤ 2L·D² / (k + 1)²
    the same, m > 0             f(w_k) − f* ≤ L·D²·(1 − √(m/L))^k

with κ = L/m. Since ‖∇f‖² ≤ 2L(f − f*), each bounds the number of steps until ‖∇f‖ ≤ ε. Reference:
Nesterov, Introductory Lectures on Convex Optimization (2004), §2.1–2.2.
"""

import math

__all__ = [
    "convex_bound",
    "iteration_bound",
    "momentum_bound",
    "non_convex_bound",
    "strongly_convex_bound",
]


def convex_bound(k: int, lipschitz: float, distance: float) -> float:
    """f(w_k) − f* for step 1/L on a convex function: L·D²/(2k)."""
    return lipschitz * distance**2 / (2 * max(k, 1))


def strongly_convex_bound(k: int, lipschitz: float, convexity: float, distance: float) -> float:
    """f(w_k) − f* for step 2/(m + L): (L/2)·q^{2k}·D²."""
    kappa = lipschitz / convexity
    return 0.5 * lipschitz * ((kappa - 1) / (kappa + 1)) ** (2 * k) * distance**2


def non_convex_bound(k: int, lipschitz: float, gap: float) -> float:
    """min_i ‖∇f(w_i)‖ for step 1/L on any smooth function: √(2L·gap/(k + 1))."""
    return math.sqrt(2 * lipschitz * gap / (k + 1))


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
