"""What may be differentiated: the inexact leaves of a pytree move, everything else stays.

So a function of an `equinox.Module`, of a dictionary with an integer in it, or of a Python float
is differentiated without ceremony: leaves that cannot move are held constant and have derivative
`None`.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland.core.errors import InputError

__all__ = ["as_cotangent", "as_tangent", "can_move", "describe", "moving", "restricted", "scalar"]


def moving(x: Any, name: str = "x") -> tuple[Any, Any]:
    """Split `x` into the leaves that move (as JAX arrays) and the rest.

    >>> moving({"w": 1.0, "degree": 2})[1]
    {'degree': 2, 'w': None}
    """
    moves, stays = eqx.partition(x, can_move)
    if not jax.tree.leaves(moves):
        raise InputError(
            f"{name} has no real or complex leaf: it is {describe(x)}",
            "at least one floating-point number or array to differentiate with respect to",
            f"Pass floats, for instance jnp.asarray({name}, float)",
        )
    return jax.tree.map(jnp.asarray, moves), stays


def restricted(f: Callable[..., Any], stays: Any, args: tuple[Any, ...]) -> Callable[[Any], Any]:
    """The function of the moving leaves alone: moves ↦ f(x, *args)."""
    return lambda moves: f(eqx.combine(moves, stays), *args)


def as_tangent(v: Any, moves: Any, name: str = "v") -> Any:
    """Bring a direction to the structure, shapes and dtypes of the point it starts from."""
    kept = _matching(v, moves, name, "x")
    return jax.tree.map(lambda part, at: _cast(part, at, name, "x"), kept, moves)


def as_cotangent(u: Any, value: Any, name: str = "u") -> Any:
    """Bring a weighting of the outputs to the structure, shapes and dtypes of f(x).

    Integer outputs have no derivative: their weights are replaced by the zero JAX asks for.
    """
    kept = _matching(u, value, name, "f(x)")
    return jax.tree.map(lambda part, out: _cotangent(part, out, name), kept, value)


def scalar(value: Any, verb: str) -> jax.Array:
    """Insist on one real number, shape (), as gradients do."""
    leaves = jax.tree.leaves(value)
    ok = len(leaves) == 1 and jnp.shape(leaves[0]) == () and _real(leaves[0])
    if not ok:
        raise InputError(
            f"{verb} was asked of a function that returns {describe(value)}",
            "a function returning one real floating-point number, shape ()",
            "Reduce it, for instance with .sum(), or ask for jacobian(f, x) instead",
        )
    return leaves[0]


def describe(x: Any) -> str:
    """Shapes and dtypes of a pytree in a few words.

    >>> import numpy as np
    >>> describe((np.ones(3), 2))
    '(float64[3], int)'
    """
    words = jax.tree.map(_word, x, is_leaf=_nothing)
    text = str(words).replace("'", "").replace('"', "")
    return text if len(text) < 200 else text[:197] + "..."


def _nothing(leaf: Any) -> bool:
    return leaf is None


def _same_structure(a: Any, b: Any) -> bool:
    return bool(jax.tree.structure(a) == jax.tree.structure(b))  # type: ignore[operator]


def can_move(leaf: Any) -> bool:
    """Whether a leaf is a real or complex number or array, which alone have derivatives."""
    if isinstance(leaf, float | complex | np.inexact):
        return True
    return isinstance(leaf, jax.Array | np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _word(leaf: Any) -> str:
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return type(leaf).__name__
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def _real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def _matching(v: Any, like: Any, name: str, anchor: str) -> Any:
    """`v` with the leaves that cannot move dropped, if its structure then is that of `like`."""
    try:
        # A direction may also be a whole copy of x: only the leaves where x moves are kept.
        kept = jax.tree.map(
            lambda at, part: None if at is None else part, like, v, is_leaf=_nothing
        )
        if _same_structure(kept, like):
            return kept
    except (ValueError, TypeError):
        pass
    raise InputError(
        f"{name} is {describe(v)}, {anchor} is {describe(like)}",
        f"{name} with the tree structure of {anchor}",
        f"Build it with jax.tree.map from {anchor}, leaf for leaf",
    )


def _cast(part: Any, at: Any, name: str, anchor: str) -> jax.Array:
    part = jnp.asarray(part)
    if part.shape != jnp.shape(at):
        raise InputError(
            f"a leaf of {name} has shape {part.shape} where {anchor} has {jnp.shape(at)}",
            "equal shapes, leaf for leaf",
            f"Reshape {name}; several directions at once go through jax.vmap",
        )
    if jnp.iscomplexobj(part) and not jnp.iscomplexobj(at):
        raise InputError(
            f"a leaf of {name} is complex where {anchor} is real",
            "a real direction at a real point",
            "Differentiate along the real and the imaginary part separately",
        )
    return part.astype(jnp.result_type(at))


def _cotangent(part: Any, out: Any, name: str) -> Any:
    kind = jnp.result_type(out)
    if jnp.issubdtype(kind, jnp.inexact):
        return _cast(part, out, name, "f(x)")
    return np.zeros(jnp.shape(out), jax.dtypes.float0)
