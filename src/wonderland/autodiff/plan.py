"""A plan to compute a Jacobian: found once from the program and its shapes, used for any values.

1. The pattern of non-zeros is read off the program (`sparsity`).
2. Columns, rows or both that never meet share a product (`colouring`).
3. Every way is priced by operations and traffic (`pricing`), the cheapest is taken (`choose`).
4. The products run in one compiled program; each entry is picked from where it lies (`recipes`).

Reference: Gebremedhin, Manne & Pothen (2005), What color is your Jacobian? SIAM Review 47(4).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO
from scipy import sparse

from wonderland.core.errors import InputError, nearest

from .checkpoint.budget import human, parse, roomy
from .choose import MODES, Candidate, candidates, pattern_of, reason
from .pricing import Price, rates
from .problem import Problem
from .recipes import Recipe, Trees, forward_products, reverse_products, values
from .sparsity import Unavailable, detect

__all__ = ["Block", "Output", "Plan", "plan_hessian", "plan_jacobian"]

Output: TypeAlias = Literal["dense", "scipy", "bcoo"]
OUTPUTS = ("dense", "scipy", "bcoo")
CONSTANTS: Final = 1 << 21  # index numbers that may be compiled into a program


class Block(NamedTuple):
    """A part of the matrix; the parts, put at their rows and columns, add up to the whole.

    Attributes:
        rows: Rows it covers.
        columns: Columns it covers.
        matrix: A NumPy array, or a CSR matrix where the plan is sparse.
    """

    rows: slice
    columns: slice
    matrix: Any


class Plan:
    """How to compute ∂f/∂x (or ∇²f) for a function and shapes; call it with a point.

    Attributes:
        problem: The function and its shapes.
        mode: "forward", "reverse", "column", "row", "two-sided", "star" or "acyclic".
        colours: Number of products of the Jacobian with vectors it runs.
        reason: Why this mode.
        prices: What each mode considered would cost, cheapest first.
        notes: Steps whose structure is unknown and which are taken as dense.

    >>> plan = plan_jacobian(lambda x: x[1:] * x[:-1], jnp.ones(6))
    >>> plan.mode, plan.colours
    ('column', 2)
    >>> plan(jnp.arange(6.0), output="scipy").toarray()[0]
    array([1., 0., 0., 0., 0., 0.], dtype=float32)
    """

    def __init__(
        self,
        problem: Problem,
        considered: Sequence[Candidate],
        pattern: Callable[[], sparse.csr_array],
        *,
        why: str,
        notes: Sequence[str],
        output: Output,
        memory: int | None,
    ) -> None:
        best = considered[0]
        self.problem, self.recipe, self.mode = problem, best.recipe(), best.price.mode
        self.colours = best.price.products
        self.prices = tuple(each.price for each in considered)
        self.reason, self.notes, self.output, self.memory = why, tuple(notes), output, memory
        self.per_product = best.price.memory / max(1, best.price.products)
        self.itemsize = max(np.dtype(leaf.dtype).itemsize for leaf in problem.leaves_out)
        self._make_pattern = pattern

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n): outputs by inputs."""
        return self.problem.shape

    @cached_property
    def pattern(self) -> sparse.csr_array:
        """Where ∂f/∂x can be non-zero, for any x: boolean CSR (m, n)."""
        return self._make_pattern()

    def __call__(self, x: Any, *args: Any, output: Output | None = None) -> Any:
        """The Jacobian at x.

        Args:
            x: A point of the planned shapes.
            args: Further arguments of f, of the planned shapes.
            output: "dense" (shaped like `jax.jacobian`), "scipy" (CSR, m × n) or "bcoo".
        """
        kind = self.output if output is None else _known_output(output)
        leaves, varies = self.problem.point(x, args)
        self._must_fit(kind)
        if kind == "dense":
            return self._matrix(leaves, varies)
        if kind == "bcoo":
            return self._bcoo.unflatten((self._entries(leaves, varies), self._indices))
        return self._csr(leaves, varies)

    def values(self, x: Any, *args: Any) -> jax.Array:
        """The entries of `pattern`, row by row, shape (entries,); for use under `jit`, `vmap`."""
        leaves, varies = self.problem.point(x, args)
        return self._entries(leaves, varies)

    def blocks(self, x: Any, *args: Any, memory: str | int | None = None) -> Iterator[Block]:
        """The Jacobian part by part, each from as many products as fit in `memory`.

        >>> plan = plan_jacobian(lambda x: x[::-1] ** 2, jnp.ones(3), mode="reverse", memory=64)
        >>> [block.rows for block in plan.blocks(jnp.ones(3))]
        [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
        """
        leaves, varies = self.problem.point(x, args)
        batch = self._batch(_bytes(memory) or self.memory) or max(self.colours, 1)
        if self.recipe.trees is not None:
            m, n = self.shape
            yield Block(slice(0, m), slice(0, n), self._csr(leaves, varies))
            return
        for forward, count in ((True, self.recipe.forward), (False, self.recipe.reverse)):
            for start in range(0, count, batch):
                part = start, min(start + batch, count)
                products = self._products(leaves, varies, part, forward=forward)
                yield self._block(products, part, forward=forward)

    def bind(self, f: Callable[..., Any]) -> "Plan":
        """The same plan for a function whose code did not travel through pickle."""
        state = self.__getstate__()
        problem = object.__new__(Problem)
        problem.__dict__.update(self.problem.__getstate__())
        problem.function = f
        other = object.__new__(Plan)
        other.__setstate__({**state, "problem": problem})
        return other

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Plan({m} × {n}, {self.mode}, {self.colours} products)"

    def __str__(self) -> str:
        head = f"{'mode':<10} {'products':>9} {'flops':>9} {'memory':>9} {'effort':>9}"
        lines = [repr(self), self.reason, "", head, *map(_row, self.prices)]
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        pattern = self.pattern  # made now: what makes it holds the table of sets
        kept = {k: v for k, v in self.__dict__.items() if k not in _REMADE}
        return {**kept, "pattern": pattern}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @cached_property
    def _tables(self) -> Any:
        """The recipe's index arrays on the device, once; no tracer, even if first used in jit."""
        rounds = None if self.recipe.trees is None else self.recipe.trees.rounds
        return _on_device((self.recipe.columns, self.recipe.rows, self.recipe.where, rounds))

    @cached_property
    def _indices(self) -> Any:
        """Row and column of each entry, (entries, 2), on the device."""
        entries = sparse.coo_array(self.pattern)
        return _on_device(np.stack([entries.row, entries.col], axis=1).astype(np.int32))

    @cached_property
    def _bcoo(self) -> Any:
        """The structure of a result, so that one is made without checking it again."""
        first = BCOO(
            (jnp.zeros(len(self._indices)), self._indices),
            shape=self.shape,
            indices_sorted=True,
            unique_indices=True,
        )
        return jax.tree.structure(first)

    @cached_property
    def _entries(self) -> Callable[[Any, Any], jax.Array]:
        """The program of all entries in a row."""
        if self.recipe.where is None:
            pick = jax.jit(lambda leaves, varies, at: self._raw(leaves, varies)[at[:, 0], at[:, 1]])
            return lambda leaves, varies: pick(leaves, varies, self._indices)
        if self._small:
            return jax.jit(self._raw)
        run = jax.jit(self._raw)
        return lambda leaves, varies: run(leaves, varies, self._tables)

    @cached_property
    def _matrix(self) -> Callable[[Any, Any], Any]:
        """The program of the dense matrix, cut into the blocks of its trees."""
        if self.recipe.where is None:
            return jax.jit(lambda leaves, varies: self.problem.block(self._raw(leaves, varies)))

        def spread(leaves: Any, varies: Any, tables: Any, indices: Any) -> Any:
            found = self._raw(leaves, varies, tables)
            at = jnp.zeros(self.shape, found.dtype).at[indices[:, 0], indices[:, 1]]
            filled = at.set(found, unique_indices=True, indices_are_sorted=True)
            return self.problem.block(filled)

        scatter = jax.jit(spread)
        return lambda leaves, varies: scatter(leaves, varies, self._tables, self._indices)

    @property
    def _small(self) -> bool:
        """Whether the index arrays may be constants of the program, which makes it faster."""
        m, n = self.shape
        numbers = self.recipe.forward * n + self.recipe.reverse * m + len(self.recipe.where)
        return numbers <= CONSTANTS

    def _raw(self, leaves: Any, varies: Any, tables: Any = None) -> jax.Array:
        """What the recipe gives: entries in CSR order, or a whole matrix."""
        recipe, live = self.recipe, self.recipe
        if tables is not None:
            columns, rows, where, rounds = tables
            trees = None if recipe.trees is None else Trees(rounds, recipe.trees.edges)
            live = Recipe(columns, rows, recipe.forward, recipe.reverse, where, trees)
        return values(self.problem.flat, leaves, varies, live, self._batch(self.memory))

    def _csr(self, leaves: Any, varies: Any) -> sparse.csr_array:
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((leaves, varies))):
            raise InputError(
                "output='scipy' was asked for inside jit, vmap or grad",
                "an output that JAX can trace",
                "Pass output='bcoo', or call the plan outside",
            )
        entries = np.asarray(self._entries(leaves, varies))
        pattern = self.pattern
        return sparse.csr_array((entries, pattern.indices, pattern.indptr), shape=self.shape)

    def _batch(self, memory: int | None) -> int | None:
        """How many products fit at once beside the result; None for all."""
        if memory is None:
            return None
        m, n = self.shape
        each = max(1, int(self.per_product))
        return max(1, (memory - min(memory // 2, (m + n) * self.itemsize)) // each)

    def _must_fit(self, kind: Output) -> None:
        m, n = self.shape
        if self.memory is None or kind != "dense":
            return
        size = m * n * self.itemsize
        if size > self.memory:
            raise InputError(
                f"the dense Jacobian takes {roomy(size)}, the memory given is {roomy(self.memory)}",
                "a result that fits",
                "Pass output='scipy', or go through plan.blocks(x)",
            )

    def _block(self, products: np.ndarray, part: tuple[int, int], *, forward: bool) -> Block:
        """The entries that the products part[0] … part[1]-1 show."""
        m, n = self.shape
        start, stop = part
        if self.recipe.where is None:
            if forward:
                return Block(slice(0, m), slice(start, stop), products.T)
            return Block(slice(start, stop), slice(0, n), products)
        offset = start * m if forward else self.recipe.forward * m + start * n
        local = np.asarray(self.recipe.where, np.int64) - offset
        mine = (local >= 0) & (local < products.size)
        entries = sparse.coo_array(self.pattern)
        data = products.ravel()[local[mine]]
        found = sparse.csr_array((data, (entries.row[mine], entries.col[mine])), shape=self.shape)
        return Block(slice(0, m), slice(0, n), found)

    def _products(
        self, leaves: Any, varies: Any, part: tuple[int, int], *, forward: bool
    ) -> np.ndarray:
        """Some of the products, on the host."""
        colours = self.recipe.columns if forward else self.recipe.rows
        size = self.shape[1] if forward else self.shape[0]
        colours = np.arange(size) if colours is None else colours
        seeds = jnp.asarray(colours[None, :] == np.arange(*part)[:, None])
        return np.asarray(self._some[forward](leaves, varies, seeds))

    @cached_property
    def _some(self) -> dict[bool, Callable[..., jax.Array]]:
        flat = self.problem.flat
        return {
            True: jax.jit(partial(forward_products, flat)),
            False: jax.jit(partial(reverse_products, flat)),
        }


_REMADE = ("_tables", "_indices", "_bcoo", "_entries", "_matrix", "_some", "_make_pattern")


def plan_jacobian(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    output: Output = "dense",
    mode: str | Sequence[str] | None = None,
    memory: str | int | None = None,
) -> Plan:
    """Plan ∂f/∂x: find its sparsity, colour it, price every mode, take the cheapest.

    J[i, j] = ∂fᵢ/∂xⱼ, with f(x) and x flattened leaf by leaf (m outputs, n inputs). Nothing is
    computed: x and args only lend their shapes. Arrays that f closes over are constants, whose
    zeros are used; arrays passed as `args` may change from call to call.

    Args:
        f: A JAX function of x and args.
        x: A point, any pytree; its floating-point leaves are differentiated.
        args: Further arguments, not differentiated.
        output: What calling the plan returns: "dense", "scipy" or "bcoo".
        mode: Restrict the choice to one mode or several.
        memory: What the result and the products may take at once ("512MB", bytes).

    >>> print(plan_jacobian(lambda x: x[1:] - x[:-1], jnp.ones(1000)).reason.partition(";")[0])
    column: 2 products J s for 1998 of 999 × 1000 entries (0.002)
    """
    return _planned(f, x, args, (output, mode, memory), gradient=False)


def plan_hessian(
    f: Callable[..., Any],
    x: Any,
    *args: Any,
    output: Output = "dense",
    mode: str | Sequence[str] | None = None,
    memory: str | int | None = None,
) -> Plan:
    """Plan ∇²f of a scalar function: products are ∇²f · s, colourings use the symmetry.

    H[i, j] = ∂²f/∂xᵢ∂xⱼ. Modes: "forward" (one product per input), "column", "star", "acyclic".
    The arguments are those of `plan_jacobian`.

    >>> plan_hessian(lambda x: jnp.sum(x[1:] * x[:-1] ** 2), jnp.ones(1000)).colours
    3
    """
    return _planned(f, x, args, (output, mode, memory), gradient=True)


def _planned(
    f: Callable[..., Any], x: Any, args: tuple[Any, ...], asked: Any, *, gradient: bool
) -> Plan:
    output, mode, memory = asked
    output, wanted, memory = _known_output(output), _known_modes(mode), _bytes(memory)
    problem = Problem(f, x, args, gradient=gradient)
    tangent, cotangent = problem.tangent(), problem.cotangent()
    found = detect(tangent, lambda: cotangent, problem.leaves_in, problem.leaves_out)
    prices = rates(problem.value_program(), tangent, cotangent)
    considered = candidates(problem, found, prices, wanted)
    missing = [each.reason for each in (tangent, cotangent) if isinstance(each, Unavailable)]
    if not considered:
        raise InputError(
            f"mode={mode!r} cannot be used here",
            "a mode this function has" + "".join(f" ({why})" for why in missing),
            "Leave mode out, so that one is chosen",
        )
    best, *others = considered
    why = "; ".join([reason(best, others, found), *missing, *found.notes])
    return Plan(
        problem,
        considered,
        pattern_of(problem, found),
        why=why,
        notes=found.notes,
        output=output,
        memory=memory,
    )


def _known_output(output: Any) -> Output:
    if output not in OUTPUTS:
        raise InputError(
            f"output is {output!r}", "'dense', 'scipy' or 'bcoo'", nearest(output, OUTPUTS)
        )
    return output


def _known_modes(mode: Any) -> tuple[str, ...] | None:
    if mode is None:
        return None
    wanted = (mode,) if isinstance(mode, str) else tuple(mode)
    for name in wanted:
        if name not in MODES:
            raise InputError(
                f"mode is {name!r}", f"one of {', '.join(MODES)}", nearest(name, MODES)
            )
    return wanted


def _bytes(memory: Any) -> int | None:
    found = parse(memory)
    if isinstance(found, float):
        raise InputError(
            f"memory is {memory!r}", "a size", "Pass bytes, or a size such as memory='512MB'"
        )
    return found


def _on_device(tree: Any) -> Any:
    with jax.ensure_compile_time_eval():
        return jax.tree.map(jnp.asarray, tree)


def _row(price: Price) -> str:
    cells = (human(each).strip() for each in (price.flops, price.memory, price.effort))
    return f"{price.mode:<10} {price.products:>9} " + " ".join(f"{cell:>9}" for cell in cells)
