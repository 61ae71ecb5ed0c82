"""Least squares from second moments in doubled precision: one pass over data of any length.

`accumulate` (in `solve.totals`) sums M = Σ ω z zᵀ over z = [1, x, y]; `solve_sweep` sweeps the
intercept out of M and solves what is left by Cholesky, all in doubled precision:

    G = M_xx − M_x1 M_1x / M_11 ,   (G + αI) w = H ,   b = ȳ − x̄ᵀw .

Forming the Gram matrix squares the condition number κ; with its entries known to about 10⁻³¹ the
coefficients are known to κ²·10⁻³¹: all that float64 holds up to κ ≈ 10⁷, ten digits up to κ ≈ 10¹⁰.
What is lost beyond is in the error bound and in the reason.
"""

from typing import NamedTuple

import numpy as np

from wonderland.core.doubled import Doubled
from wonderland.solve.bounds import UNIT
from wonderland.solve.choose import Method
from wonderland.solve.problem import Array, LinearFit
from wonderland.solve.refine import EPS
from wonderland.solve.totals import NOISE, Chunk, Totals, accumulate
from wonderland.solve.triangle import Triangle, add_up, pivoted_cholesky, times

__all__ = ["Chunk", "Totals", "accumulate", "solve_sweep"]

UNKNOWN = 4.0 * NOISE  # of a centred entry: its own, two of the sums, one of their product
CARRIED = 1e-10  # relative error from the moments alone beyond which the reason says so
TIED = 1e-8  # share of a dependent column below which another is not named as part of it


class _Centred(NamedTuple):
    """Moments about the means in the scaled units of `Totals`; without an intercept about zero.

    Attributes:
        first: 1 with an intercept, else 0.
        gram: G (d, d).
        cross: H (d, t).
        power: V (t,), Σω(y − ȳ)².
        mean: x̄ and ȳ in the units of the data (d + t,).
        raw: √Σω(s·x)² and √Σω(s·y)² (d + t,).
    """

    first: int
    gram: Doubled
    cross: Doubled
    power: Doubled
    mean: Doubled
    raw: Array


class _Level(NamedTuple):
    """The outputs of one penalty; columns scaled by powers of two to norms near 1.

    Attributes:
        totals: What the pass kept.
        centred: About the means.
        here: Which outputs (t,).
        C: D(G + αI)D (d, d).
        h: D·H (d, t).
        D: (d,).
        penalty: What α adds to the diagonal of C (d,).
        floor: Diagonal of C at most when a column is dependent (d,).
        unit: w = v·unit turns a solution of C v = h into coefficients (d, t).
    """

    totals: Totals
    centred: _Centred
    here: np.ndarray
    C: Doubled
    h: Doubled
    D: Array
    penalty: Array
    floor: Array
    unit: Array


def solve_sweep(totals: Totals, alpha: Array, fit_intercept: bool) -> LinearFit:  # noqa: FBT001
    """Solve from totals, output groups of equal penalty together.

    Args:
        totals: From `accumulate` with the same `fit_intercept`.
        alpha: Penalty per output (t,).
        fit_intercept: Whether b is free.

    >>> x = np.arange(5.0)[:, None]
    >>> totals = accumulate([(x, 2 * x + 1, None)], fit_intercept=True)
    >>> fit = solve_sweep(totals, np.zeros(1), True)
    >>> fit.coef.item(), fit.intercept.item(), fit.solver
    (2.0, 1.0, 'doubled-precision sweep')
    """
    if not fit_intercept and totals.shift.any():
        raise ValueError("these totals were shifted for an intercept: accumulate without one")
    centred = _centre(totals, first=int(fit_intercept))
    levels = np.unique(alpha)
    places = [np.flatnonzero(alpha == level) for level in levels]
    fits = [
        _solve_level(_state(totals, centred, float(level), here))
        for level, here in zip(levels, places, strict=True)
    ]
    return fits[0] if len(fits) == 1 else _merge(fits, places)


def _merge(fits: list[LinearFit], places: list[np.ndarray]) -> LinearFit:
    """Put outputs of different penalties back in their places; claims take the worst."""
    back = np.argsort(np.concatenate(places))
    worst = max(fits, key=lambda fit: fit.condition)
    return worst._replace(
        coef=np.hstack([fit.coef for fit in fits])[:, back],
        error=np.hstack([fit.error for fit in fits])[:, back],
        intercept=np.concatenate([fit.intercept for fit in fits])[back],
        rss=np.concatenate([fit.rss for fit in fits])[back],
        inverse=None,
        rank=min(fit.rank for fit in fits),
        gradient=max(fit.gradient for fit in fits),
    )


def _centre(totals: Totals, *, first: int) -> _Centred:
    """Sweep the intercept out of M."""
    M, d = totals.moments, totals.features
    rest, mean = M.take(slice(1, None), slice(1, None)), Doubled.of(np.zeros(len(M.high) - 1))
    if first:
        sums = M.take(0, slice(1, None))
        mean = sums / M.take(0, slice(0, 1))
        rest = rest - sums.take(slice(None), None) * mean.take(None)
    diagonal = Doubled(np.diag(rest.high).copy(), np.diag(rest.low).copy())
    mean = Doubled.of(totals.shift[1:]) + _scaled(mean, 1.0 / totals.scale[1:])
    size = (totals.scale[1:] * mean.value) ** 2
    return _Centred(
        first=first,
        gram=rest.take(slice(0, d), slice(0, d)),
        cross=rest.take(slice(0, d), slice(d, None)),
        power=diagonal.take(slice(d, None)),
        mean=mean,
        raw=np.sqrt(np.maximum(diagonal.value, 0.0) + totals.mass * size),
    )


def _scaled(a: Doubled, power: Array) -> Doubled:
    """Scaling by powers of two is exact."""
    return Doubled(a.high * power, a.low * power)


def _state(totals: Totals, centred: _Centred, alpha: float, here: np.ndarray) -> _Level:
    """Scale the columns, and say below what a column counts as dependent.

    As in `solve.refine` that is 8ε√p of its raw norm; or what the moments do not know of it.
    """
    d, p = totals.features, len(totals.shift) - 1
    scale, scale_y = totals.scale[1 : 1 + d], totals.scale[1 + d :][here]
    penalty = alpha * scale**2 if alpha else np.zeros(d)
    diagonal = np.diag(centred.gram.high) + penalty
    known = p * (8.0 * EPS) ** 2 * (centred.raw[:d] ** 2 + penalty)
    floor = np.maximum(known, p * UNKNOWN * totals.peak[1 : 1 + d])
    size = np.maximum(diagonal, floor)
    D = np.exp2(-np.rint(np.log2(np.where(size > 0, size, 1.0)) / 2))
    return _Level(
        totals=totals,
        centred=centred,
        here=here,
        C=_scaled(centred.gram, D * D[:, None]) + Doubled.of(np.diag(penalty * D * D)),
        h=_scaled(centred.cross.take(slice(None), here), D[:, None]),
        D=D,
        penalty=penalty * D * D,
        floor=floor * D * D,
        unit=(scale * D)[:, None] / scale_y,
    )


def _solve_level(level: _Level) -> LinearFit:
    d = level.totals.features
    raw = (level.centred.raw[:d] * level.D) ** 2 + level.penalty
    triangle = pivoted_cholesky(level.C, level.floor, 1.0 / np.where(raw > 0, raw, 1.0))
    v, step = triangle.solve(level.C, level.h)
    full = triangle.rank == d
    best = v if full else _minimum_norm(level, triangle, v)
    condition, how = triangle.condition()
    fit = LinearFit(
        coef=best.value * level.unit,
        intercept=_intercept(level, best),
        inverse=None,
        rss=_residual(level, v),
        rank=triangle.rank,
        condition=condition,
        condition_how=how,
        gradient=_gradient(level, best),
        error=np.full((d + level.centred.first, len(level.here)), np.inf),
        collinear=() if level.totals.rows <= d else _ties(level, triangle),
        solver=str(Method.SWEEP),
        reason=f"{level.totals.seen:,} rows came in chunks: one pass, moments in doubled precision",
    )
    if not full:
        return fit._replace(reason=f"{fit.reason}; {d - fit.rank} dependent columns")
    inverse = _inverse(level, triangle)
    return _bounded(level, fit._replace(inverse=inverse), inverse, step)


def _intercept(level: _Level, v: Doubled) -> Array:
    """B = ȳ − x̄ᵀw (t,)."""
    mean, d = level.centred.mean, level.totals.features
    if not level.centred.first:
        return np.zeros(len(level.here))
    along = add_up(mean.take(slice(0, d), None) * _scaled(v, level.unit))
    return (mean.take(slice(d, None)).take(level.here) - along).value


def _residual(level: _Level, v: Doubled) -> Array:
    """Σωr² = V − vᵀ(2h − (C − A)v) for the penalty A (t,)."""
    bent = times(level.C, v) - Doubled.of(level.penalty[:, None]) * v
    taken = add_up(v * (level.h + level.h - bent))
    scale = level.totals.scale[1 + level.totals.features :][level.here]
    return np.maximum((level.centred.power.take(level.here) - taken).value, 0.0) / scale**2


def _gradient(level: _Level, v: Doubled) -> float:
    """Largest |x_jᵀΩr − αw_j| / (‖x_j‖ ‖y‖) at the coefficients as float64 holds them."""
    slack = np.abs((level.h - times(level.C, Doubled.of(v.value))).value)
    own = np.maximum(np.diag(level.C.high) - level.penalty, level.floor)
    power = np.maximum(level.centred.power.value[level.here], 0.0)
    norms = np.sqrt(own)[:, None] * np.sqrt(power)
    return float(np.max(slack / np.where(norms > 0, norms, 1.0), initial=0.0))


def _inverse(level: _Level, triangle: Triangle) -> Array:
    """(ZᵀΩZ + αI)⁻¹ for Z = [1, X], intercept first (p, p)."""
    centred, d = level.centred, level.totals.features
    Y, kept = triangle.inverse, triangle.kept
    unit = level.D * level.totals.scale[1 : 1 + d]
    product = times(Y, Doubled(Y.high.T, Y.low.T))
    inner = Doubled.of(np.zeros((d, d)))
    inner.high[np.ix_(kept, kept)], inner.low[np.ix_(kept, kept)] = product
    inner = _scaled(inner, unit * unit[:, None])
    if not centred.first:
        return inner.value
    mean = centred.mean.take(slice(0, d), None)
    lean = times(inner, mean)
    mass = level.totals.moments.take(0, slice(0, 1))
    corner = Doubled.of(np.ones(1)) / mass + add_up(mean * lean)
    return np.block([[corner.value[None, :], -lean.value.T], [-lean.value, inner.value]])


def _minimum_norm(level: _Level, triangle: Triangle, v: Doubled) -> Doubled:
    """Among all solutions the one with the smallest slopes: take away their null-space part."""
    d, rank = level.totals.features, triangle.rank
    null = np.zeros((d, d - rank))
    null[triangle.kept] = -triangle.ties()
    null[triangle.order[rank:]] = np.eye(d - rank)
    # Slopes are v·unit; the unit of y is common to all of them.
    unit = (level.D * level.totals.scale[1 : 1 + d])[:, None]
    null *= unit
    null /= np.sqrt((null**2).sum(axis=0))
    w = v.value * unit
    return Doubled.of((w - null @ np.linalg.lstsq(null, w, rcond=None)[0]) / unit)


def _ties(level: _Level, triangle: Triangle) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Which kept columns reproduce each dependent one."""
    kept, dropped = triangle.kept, triangle.order[triangle.rank :]
    raw = level.centred.raw[: level.totals.features] * level.D
    share = np.abs(triangle.ties()) * raw[kept][:, None]
    return tuple(
        (int(j), tuple(sorted(int(k) for k in kept[part > TIED * raw[j]])))
        for j, part in zip(dropped, share.T, strict=True)
    )


def _bounded(level: _Level, fit: LinearFit, inverse: Array, step: Array) -> LinearFit:
    """Add the error bound, and say so when the moments carry less than the data did.

    Rounding of the data enters as in `solve.bounds`; what the moments do not know, |δM_ij| ≤
    NOISE·B_i·B_j with B² = `Totals.peak`, enters through the inverse C of G once more:
    |δw| ≤ |C|B · NOISE · (Bᵀ|w| + B_y).
    """
    totals, centred, first = level.totals, level.centred, level.centred.first
    d = totals.features
    beta = np.vstack([fit.intercept[None, :], fit.coef])[1 - first :]
    raw = UNIT * np.where(totals.rounded, 1.0, 0.0)[1:] * centred.raw / totals.scale[1:]
    blur = np.sqrt(totals.peak[1:]) / totals.scale[1:]
    weight = np.abs(fit.coef)
    spread = np.sqrt(np.maximum(np.diag(inverse), 0.0))[:, None]
    reach = np.abs(inverse[:, first:])
    near = spread * (raw[:d] @ weight + raw[d:][level.here])
    far = (reach @ raw[:d])[:, None] * np.sqrt(fit.rss)
    unknown = (reach @ blur[:d])[:, None] * (blur[:d] @ weight + blur[d:][level.here]) * UNKNOWN
    last = np.abs(step * level.unit)
    last = np.vstack([np.abs(centred.mean.value[None, :d]) @ last, last])[1 - first :]
    error = near + far + unknown + last + UNIT * np.abs(beta)
    return fit._replace(error=error, reason=fit.reason + _warning(level, fit, unknown[first:]))


def _warning(level: _Level, fit: LinearFit, unknown: Array) -> str:
    """What to say of the part of the error that a solver on the data would not have made."""
    norms = np.sqrt(np.maximum(np.diag(level.C.high), 0.0))[:, None]
    size = (norms * np.abs(fit.coef / level.unit)).max(axis=0, initial=0.0)
    lost = (norms * unknown / level.unit).max(axis=0, initial=0.0)
    share = float(np.max(lost / np.where(size > 0, size, np.inf), initial=0.0))
    if share <= CARRIED:
        return ""
    return (
        f"; condition {fit.condition:.3g} is more than moments carry to 10 digits: up to "
        f"{share:.0e} of the coefficients may be lost, which QR in memory would keep"
    )
