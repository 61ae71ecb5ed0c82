"""Which way to a Jacobian is cheapest, and the sentence why.

Candidates: one product per input (forward), one per output (reverse), one per colour of the
columns, of the rows, of both; for Hessians one per colour of a star or an acyclic colouring. A
colouring is looked for only while the least it could cost is below the best price so far.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .checkpoint.budget import human
from .colouring import acyclic, colour_both, colour_columns, colour_symmetric
from .colouring.one_sided import row_sizes
from .colouring.star import alone
from .pricing import Price, Rates
from .problem import Problem
from .recipes import Recipe, dense_recipe, tree_steps
from .sparsity import Detected

__all__ = ["MODES", "Candidate", "candidates", "pattern_of", "reason"]

MODES = ("forward", "reverse", "column", "row", "two-sided", "star", "acyclic")
INDEX = 4  # bytes of one index


class Candidate(NamedTuple):
    """One way to the whole matrix.

    Attributes:
        price: What it costs.
        recipe: Makes its seeds and the places of the entries.
        words: How it works, for the reason.
    """

    price: Price
    recipe: Callable[[], Recipe]
    words: str


class Search:
    """The candidates so far and what they are made from."""

    def __init__(self, problem: Problem, found: Detected, rates: Rates, wanted: Any) -> None:
        self.problem, self.found, self.rates = problem, found, rates
        self.wanted, self.pattern = wanted, pattern_of(problem, found)
        self.itemsize = max(np.dtype(leaf.dtype).itemsize for leaf in problem.leaves_out)
        self.best: list[Candidate] = []

    @property
    def limit(self) -> float:
        """The best price so far."""
        return min((each.price.effort for each in self.best), default=float("inf"))

    def allows(self, mode: str) -> bool:
        """Whether this mode may be chosen."""
        return self.wanted is None or mode in self.wanted

    def add(
        self,
        mode: str,
        products: tuple[int, int],
        entries: int,
        recipe: Callable[[], Recipe],
        words: str,
    ) -> None:
        """Price one way, if it is allowed and its products exist."""
        if not self.allows(mode):
            return
        m, n = self.problem.shape
        gathered = 0 if mode in MODES[:2] else entries * INDEX
        shown = (products[0] * m + products[1] * n) * self.itemsize
        price = self.rates.price(mode, products, entries * self.itemsize, gathered + shown)
        if price is not None:
            self.best.append(Candidate(price, recipe, words))

    def worth(self, products: int, *, forward: bool) -> bool:
        """Whether so many products could still beat the best."""
        return products * self.rates.one(forward=forward) < self.limit


def candidates(problem: Problem, found: Detected, rates: Rates, wanted: Any) -> list[Candidate]:
    """Every way considered, cheapest first."""
    search = Search(problem, found, rates, wanted)
    m, n = problem.shape
    for mode, products in (("forward", (n, 0)), ("reverse", (0, m))):
        if mode == "forward" or not problem.gradient:
            recipe = _plain(problem.shape, forward=mode == "forward")
            search.add(mode, products, m * n, recipe, "")
    sparse_enough = 2 * found.entries <= m * n or search.limit == float("inf")
    if min(m, n) > 1 and (sparse_enough or wanted is not None):
        _coloured(search)
    return sorted(search.best, key=lambda each: each.price.effort)


def pattern_of(problem: Problem, found: Detected) -> Callable[[], sparse.csr_array]:
    """The pattern (m, n), made when asked for; that of a Hessian is made symmetric."""

    @cache
    def pattern() -> sparse.csr_array:
        plain = found.pattern()
        if problem.gradient:
            plain = sparse.csr_array((plain + plain.T).astype(bool))
            plain.sort_indices()
        return plain

    return pattern


def _plain(shape: tuple[int, int], *, forward: bool) -> Callable[[], Recipe]:
    return lambda: dense_recipe(shape, forward=forward)


def _coloured(search: Search) -> None:
    pattern = search.pattern()
    if search.problem.gradient:
        _symmetric(search, pattern)
        return
    column = _one_side(search, pattern, forward=True)
    row = _one_side(search, pattern, forward=False)
    if min(column, row) > 2:
        _both_sides(search, pattern)


def _one_side(search: Search, pattern: sparse.csr_array, *, forward: bool) -> int:
    """Colour columns (or rows); how many products that takes at least."""
    mode = "column" if forward else "row"
    turned = pattern if forward else sparse.csr_array(pattern.T)
    least = int(row_sizes(turned).max(initial=0))
    if not search.allows(mode) or not search.worth(least, forward=forward):
        return least
    shapes = search.problem.shapes_in if forward else search.problem.shapes_out
    found = colour_columns(turned, shapes)
    products = (found.number, 0) if forward else (0, found.number)

    def recipe() -> Recipe:
        columns, rows = (found.colours, None) if forward else (None, found.colours)
        return Recipe(columns, rows, *products, places(pattern, (columns, rows), 0))

    words = _bound(found.number, found.least, "row" if forward else "column")
    search.add(mode, products, pattern.nnz, recipe, words)
    return found.number


def _bound(number: int, least: int, line: str) -> str:
    if number == least:
        return f"no colouring needs fewer: a {line} has {least} entries"
    return f"at least {least} are needed: a {line} has {least} entries"


def _both_sides(search: Search, pattern: sparse.csr_array) -> None:
    prices = search.rates.one(forward=True), search.rates.one(forward=False)
    if not search.allows("two-sided") or float("inf") in prices:
        return
    forced = search.wanted is not None and not search.best
    budget = float("inf") if forced else search.limit
    found = colour_both(pattern, search.problem.shapes_in, prices, budget)
    if found is None:
        return

    def recipe() -> Recipe:
        where = places(pattern, (found.columns, found.rows), found.forward)
        return Recipe(found.columns, found.rows, found.forward, found.reverse, where)

    dense = int((found.rows >= 0).sum())
    words = f"{dense} dense rows by {found.reverse} products uᵀJ, the rest by {found.forward} J s"
    products = found.forward, found.reverse
    search.add("two-sided", products, pattern.nnz, recipe, words)


def places(pattern: sparse.csr_array, colours: tuple[Any, Any], forward: int) -> np.ndarray:
    """Where each entry (i, j) lies in [J s products (k, m) | uᵀJ products (k′, n)], laid flat."""
    columns, rows = colours
    m, n = pattern.shape
    i = np.repeat(np.arange(m, dtype=np.int64), row_sizes(pattern))
    j = pattern.indices.astype(np.int64)
    if rows is None:
        return _index(columns[j].astype(np.int64) * m + i)
    by_row = forward * m + rows[i].astype(np.int64) * n + j
    if columns is None:
        return _index(by_row)
    return _index(np.where(rows[i] >= 0, by_row, columns[j].astype(np.int64) * m + i))


def _index(where: np.ndarray) -> np.ndarray:
    return where.astype(np.int32) if where.max(initial=0) < 2**31 else where


def _symmetric(search: Search, pattern: sparse.csr_array) -> None:
    if search.allows("star"):
        _star(search, pattern)
    if search.allows("column") and search.worth(int(row_sizes(pattern).max()), forward=True):
        _one_side(search, pattern, forward=True)
    if search.allows("acyclic"):
        _trees(search, pattern)


def _star(search: Search, pattern: sparse.csr_array) -> None:
    found = colour_symmetric(pattern, search.problem.shapes_in)

    def recipe() -> Recipe:
        n = pattern.shape[0]
        i = np.repeat(np.arange(n, dtype=np.int64), row_sizes(pattern))
        j = pattern.indices.astype(np.int64)
        here = alone(pattern, found.colours)
        colour = np.where(here, found.colours[j], found.colours[i]).astype(np.int64)
        where = _index(colour * n + np.where(here, i, j))
        return Recipe(found.colours, None, found.number, 0, where)

    words = "neighbours differ and four in a path have three colours, so h_ij or h_ji stands alone"
    search.add("star", (found.number, 0), pattern.nnz, recipe, words)


def _trees(search: Search, pattern: sparse.csr_array) -> None:
    found = acyclic(pattern)
    if found is None:
        return

    def recipe() -> Recipe:
        n, edges = pattern.shape[0], len(found.ends)
        i = np.repeat(np.arange(n, dtype=np.int64), row_sizes(pattern))
        j = pattern.indices.astype(np.int64)
        low, high = np.minimum(i, j), np.maximum(i, j)
        keys = found.ends[:, 0] * n + found.ends[:, 1]
        order = np.argsort(keys)
        found_at = np.searchsorted(keys[order], low * n + high).clip(0, max(edges - 1, 0))
        edge = order[found_at] if edges else np.zeros(len(i), np.int64)
        diagonal = edges + found.colours[i].astype(np.int64) * n + i
        where = _index(np.where(i == j, diagonal, edge))
        return Recipe(found.colours, None, found.number, 0, where, tree_steps(found))

    depth = len(found.rounds)
    words = f"two colours span trees only; entries are solved for in {depth} rounds"
    extra = pattern.nnz * depth  # substitution reads and writes the products once a round
    search.add("acyclic", (found.number, 0), pattern.nnz + extra, recipe, words)


def reason(best: Candidate, others: list[Candidate], found: Detected) -> str:
    """The sentence why: what is run, why no fewer, what the runners-up would have cost."""
    m, n = found.shape
    share = found.entries / max(m * n, 1)
    kinds = {"reverse": "uᵀJ", "row": "uᵀJ", "two-sided": "with J"}
    kind = kinds.get(best.price.mode, "J s")
    text = (
        f"{best.price.mode}: {best.price.products} product{'s' * (best.price.products != 1)} "
        f"{kind} for {found.entries} of {m} × {n} entries ({share:.3g})"
    )
    if best.words:
        text += f"; {best.words}"
    rivals = [f"{each.price.mode} {human(each.price.effort).strip()}" for each in others[:3]]
    if rivals:
        text += f"; effort {human(best.price.effort).strip()} against {', '.join(rivals)}"
    return text
