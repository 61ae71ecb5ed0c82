"""The quadratic inside a step: an active-set Newton method in BLAS, without a loop over entries.

    minimise over u (m,):   q(u) = ½ uᵀHu + cᵀu + Σ_j λ_j |u_j| ,     H positive definite.

On a face, where every entry keeps its sign s_j (or is zero), q is a plain quadratic. A round lets
the entries move that are not zero and those zeros whose gradient exceeds λ_j, solves the face by
Cholesky and goes towards its minimum. On the way entries cross zero; along the line q is a
parabola with kinks there, so that its exact minimum is found by sorting the crossings. Where
stopping at the sign change of every entry at once lies lower, that point is taken instead: it
drops many entries in one round. q falls with every round and there are finitely many faces.
Shapes: H (m, m), c (m,), λ (m,), u (m,); λ_j = 0 for an entry that is not penalised.

Reference: Osborne, Presnell & Turlach (2000), A new approach to variable selection in least
squares problems; Byrd, Chin, Nocedal & Oztoprak (2016) for faces with many entries at once.
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from wonderland.core.blocks import calm

__all__ = ["Faces", "solve_quadratic"]

BORDER = 6  # a kept factor serves faces that differ in less than this part of their entries
TRUST = 1e-6  # relative residual of such a solve; the next round works off what is left
SOLVED = 0.01  # slope along a face, as part of the strongest zero's, at which zeros may join
FEW = 8  # zeros that may join an empty face
SPECK = 1e-14  # of the largest entry: kept, such remains of a crossing would block every step
JITTER = 1e-13  # of the unit diagonal; raised where a face is singular


class Faces:
    """H (m, m) with a unit diagonal, and solves with its principal submatrices.

    The factor of one face is kept: a face that differs from it in r entries is solved by bordering
    with those that joined and constraining those that left to zero, O(m²r) instead of O(m³).
    """

    def __init__(self, H: np.ndarray) -> None:
        self.H = H
        self._kept = np.empty(0, dtype=int)
        self._factor: Any = None

    def solve(self, face: np.ndarray, right: np.ndarray) -> np.ndarray:
        """x (m,) with H_FF x_F = right_F and zero elsewhere, for a mask F (m,)."""
        wanted = np.flatnonzero(face)
        held = np.zeros_like(face)
        held[self._kept] = True
        joined, left = np.flatnonzero(face & ~held), np.flatnonzero(held & ~face)
        if BORDER * (len(joined) + len(left)) < len(wanted):
            x = self._bordered(joined, left, right)
            if np.abs((right - self.H @ x)[wanted]).max() <= TRUST * np.abs(right[wanted]).max():
                return x
        self._kept, self._factor = wanted, _factor(self.H[np.ix_(wanted, wanted)])
        x = np.zeros_like(right)
        x[wanted] = cho_solve(self._factor, right[wanted], check_finite=False)
        return x

    def _bordered(self, joined: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Eliminate the kept face from [[H_KK, B, E], [Bᵀ, H_JJ, 0], [Eᵀ, 0, 0]]."""
        x, a = np.zeros_like(right), len(joined)
        kept = right[self._kept]
        known = np.isin(self._kept, left)
        kept[known] = 0.0
        if not a and not len(left):
            x[self._kept] = cho_solve(self._factor, kept, check_finite=False)
            return x
        border = np.zeros((len(kept), a + len(left)))
        border[:, :a] = self.H[np.ix_(self._kept, joined)]
        border[np.flatnonzero(known), a + np.arange(len(left))] = 1.0
        solved = cho_solve(self._factor, np.column_stack([kept, border]), check_finite=False)
        corner = -border.T @ solved[:, 1:]
        corner[:a, :a] += self.H[np.ix_(joined, joined)]
        rest = -border.T @ solved[:, 0]
        rest[:a] += right[joined]
        try:
            outer = np.linalg.solve(corner, rest)
        except LinAlgError:
            return x  # judged, and refused, by its residual
        x[self._kept] = solved[:, 0] - solved[:, 1:] @ outer
        x[joined], x[left] = outer[:a], 0.0
        return x


def _factor(H: np.ndarray) -> Any:
    """Cholesky; a singular H is made definite by the least power of a hundred."""
    jitter = JITTER
    while True:
        raised = H.copy()
        raised.flat[:: len(H) + 1] += jitter
        try:
            with calm(len(H) ** 3 / 3.0):
                return cho_factor(raised, overwrite_a=True, check_finite=False)
        except LinAlgError:
            jitter *= 100.0


def solve_quadratic(
    faces: Faces, c: np.ndarray, penalty: np.ndarray, u: np.ndarray, rounds: int = 100
) -> np.ndarray:
    """The minimiser, from a start u.

    >>> solve_quadratic(Faces(np.eye(2)), np.array([-3.0, 0.5]), np.ones(2), np.zeros(2))
    array([2., 0.])
    """
    slack = 1e-14 * (np.abs(c).max(initial=0.0) + penalty.max(initial=0.0))
    gradient = faces.H @ u + c
    for _ in range(rounds + len(u)):
        face, slope = _face(gradient, penalty, u, slack)
        if not face.any() or np.abs(slope[face]).max() <= slack:
            break
        move = _direction(faces, slope, face, gradient, u, penalty)
        ways = [_along_line(faces.H, gradient, penalty, u, move)]
        if np.any(u * (u + move) < 0):
            ways.append(_to_orthant(faces.H, gradient, u, move))
        before, (u, gradient) = u, _lower(ways, c, penalty)
        u[np.abs(u) <= SPECK * np.abs(u).max()] = 0.0
        if np.array_equal(before, u):
            break
    return u


def _face(
    gradient: np.ndarray, penalty: np.ndarray, u: np.ndarray, slack: float
) -> tuple[np.ndarray, np.ndarray]:
    """Entries that may move (m,), and the slope of q along each, signs taken of the face.

    Zeros join once the present face is nearly solved (before, entries on their way out would stop
    each step after next to nothing), the strongest first, half as many as there are already: more
    at once would outnumber what H can tell apart, and leave again one by one.
    """
    face = (u != 0) | (penalty == 0)
    sign = np.where(u != 0, np.sign(u), -np.sign(gradient))
    slope = gradient + penalty * sign
    excess = np.where(face, 0.0, np.abs(gradient) - penalty)
    if np.abs(slope[face]).max(initial=0.0) > SOLVED * excess.max(initial=0.0) + slack:
        return face, slope
    room = max(FEW, int(face.sum()) // 2)
    join = np.flatnonzero(excess > slack)
    if len(join) > room:
        join = join[np.argpartition(-excess[join], room)[:room]]
    face[join] = True
    return face, slope


def _direction(
    faces: Faces,
    slope: np.ndarray,
    face: np.ndarray,
    gradient: np.ndarray,
    u: np.ndarray,
    penalty: np.ndarray,
) -> np.ndarray:
    """Newton's direction on the face; zeros that would leave against their sign stay zero.

    Once only the strongest is left to join a face that is otherwise solved, its sign is right.
    """
    fresh = face & (u == 0) & (penalty > 0)
    move = _newton(faces, slope, face)
    while (wrong := fresh & face & (move * gradient > 0)).any():
        face = face & ~wrong
        move = _newton(faces, slope, face)
    if (face & fresh).any() or not fresh.any():
        return move
    strongest = np.arange(len(u)) == np.argmax(np.where(fresh, np.abs(slope), -1.0))
    if np.abs(slope[face]).max(initial=0.0) < 0.1 * np.abs(slope[strongest]).max():
        alone = _newton(faces, slope, face | strongest)
        if (alone * gradient)[strongest] < 0:
            return alone
    return move


def _newton(faces: Faces, slope: np.ndarray, face: np.ndarray) -> np.ndarray:
    """−H⁻¹ slope on the face, zero elsewhere (m,)."""
    return -faces.solve(face, slope) if face.any() else np.zeros_like(slope)


Candidate = tuple[np.ndarray, np.ndarray]


def _along_line(
    H: np.ndarray, gradient: np.ndarray, penalty: np.ndarray, u: np.ndarray, move: np.ndarray
) -> Candidate:
    """The exact minimum of q on the line u + t·move, t ≥ 0: (point, its smooth gradient)."""
    turned = H @ move
    curvature = float(move @ turned)
    sign = np.where(u != 0, np.sign(u), np.sign(move))
    slope = float((gradient + penalty * sign) @ move)
    crossing = np.flatnonzero((u * move < 0) & (penalty > 0))
    times = -u[crossing] / move[crossing]
    order = np.argsort(times)
    crossing, times = crossing[order], times[order]
    jumps = 2.0 * penalty[crossing] * np.abs(move[crossing])
    before = slope + curvature * times + np.cumsum(jumps) - jumps  # slope just before each
    stop = int(np.searchsorted(before >= 0, 1))
    reached = slope + jumps[:stop].sum()  # slope at t = 0 of the parabola between the kinks
    t = -reached / curvature if curvature > 0 else 0.0
    low = times[stop - 1] if stop else 0.0
    t = max(t, low)
    point = u + t * move
    if stop:
        point[crossing[times == t]] = 0.0
    return point, gradient + t * turned


def _to_orthant(H: np.ndarray, gradient: np.ndarray, u: np.ndarray, move: np.ndarray) -> Candidate:
    """The end of the step with every entry that changed its sign set to zero."""
    end = u + move
    end[u * end < 0] = 0.0
    return end, gradient + H @ (end - u)


def _lower(candidates: list[Candidate], c: np.ndarray, penalty: np.ndarray) -> Candidate:
    """The candidate with the smaller q = ½ uᵀ(gradient + c) + λᵀ|u|."""
    return min(candidates, key=lambda at: 0.5 * at[0] @ (at[1] + c) + penalty @ np.abs(at[0]))
