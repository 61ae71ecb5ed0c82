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

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["solve_quadratic"]

SOLVED = 0.01  # slope along a face, as part of the strongest zero's, at which zeros may join
FEW = 8  # zeros that may join an empty face
SPECK = 1e-14  # of the largest entry: kept, such remains of a crossing would block every step
JITTER = 1e-13  # of the unit diagonal; raised where a face is singular


def solve_quadratic(
    H: np.ndarray, c: np.ndarray, penalty: np.ndarray, u: np.ndarray, rounds: int = 100
) -> np.ndarray:
    """The minimiser, from a start u; scaled inside to a unit diagonal.

    >>> solve_quadratic(np.eye(2), np.array([-3.0, 0.5]), np.ones(2), np.zeros(2))
    array([2., 0.])
    """
    diagonal = np.diag(H)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    H, c, penalty, u = H * scale * scale[:, None], c * scale, penalty * scale, u / scale
    slack = 1e-14 * (np.abs(c).max(initial=0.0) + penalty.max(initial=0.0))
    gradient = H @ u + c
    for _ in range(rounds + len(u)):
        face, slope = _face(gradient, penalty, u, slack)
        if not face.any() or np.abs(slope[face]).max() <= slack:
            break
        move = _direction(H, slope, face, gradient, u, penalty)
        ways = [_along_line(H, gradient, penalty, u, move), _to_orthant(H, gradient, u, move)]
        before, (u, gradient) = u, _lower(ways, c, penalty)
        u[np.abs(u) <= SPECK * np.abs(u).max()] = 0.0
        if np.array_equal(before, u):
            break
    return u * scale


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
    H: np.ndarray,
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
    move = _newton(H, slope, face)
    while (wrong := fresh & face & (move * gradient > 0)).any():
        face = face & ~wrong
        move = _newton(H, slope, face)
    if (face & fresh).any() or not fresh.any():
        return move
    strongest = np.arange(len(u)) == np.argmax(np.where(fresh, np.abs(slope), -1.0))
    if np.abs(slope[face]).max(initial=0.0) < 0.1 * np.abs(slope[strongest]).max():
        alone = _newton(H, slope, face | strongest)
        if (alone * gradient)[strongest] < 0:
            return alone
    return move


def _newton(H: np.ndarray, slope: np.ndarray, face: np.ndarray) -> np.ndarray:
    """−H⁻¹ slope on the face, zero elsewhere (m,)."""
    move, kept = np.zeros_like(slope), np.flatnonzero(face)
    if len(kept):
        move[kept] = -_solve(H[np.ix_(kept, kept)], slope[kept])
    return move


def _solve(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    """H⁻¹ right by Cholesky; a singular H is made definite by the least power of ten."""
    jitter = JITTER
    while True:
        raised = H.copy()
        raised.flat[:: len(H) + 1] += jitter
        try:
            factor = cho_factor(raised, overwrite_a=True, check_finite=False)
            return cho_solve(factor, right, check_finite=False)
        except LinAlgError:
            jitter *= 100.0


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
