"""Loops too long to unroll: the pattern of one body, composed or closed transitively.

One iteration maps what the carry depends on linearly: c′ = B c ∪ R, with B the body's own pattern.
After any number of iterations c ⊆ B* (c₀ ∪ R), and B* is cheap once the strongly connected parts of
B are merged: all elements of such a part share one set.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn
from scipy import sparse
from scipy.sparse import csgraph

from .interpreter import Context, Value, shape_of
from .sets import LIMIT, Dependence, common, join, nothing, seeds, through, unite

__all__ = ["Body", "body_of", "closed_scan", "closed_state", "stepped_scan"]


class Body(NamedTuple):
    """The pattern of one iteration over its own inputs.

    Attributes:
        flows: For each output, its CSR over [constants | carry | slices], or None.
        shapes: Shapes of the carry (dependent ones) and of the outputs.
        consts: Constants that depend on the seed, flat, one after the other.
        active: Which carry entries depend on the seed.
        slices: Which scanned inputs depend on the seed.
        edges: Where the carry starts and ends among the columns of a flow, and their number.
    """

    flows: list[sparse.csr_array | None]
    shapes: list[tuple[int, ...]]
    consts: list[Dependence]
    active: list[int]
    slices: list[int]
    edges: tuple[int, int, int]


def body_of(
    context: Context,
    program: ClosedJaxpr,
    consts: Sequence[Value],
    carry: Sequence[Value],
    xs: Sequence[Value],
) -> Body:
    """Find which carry entries ever depend on the seed, and how one iteration mixes them.

    Whatever is carried or scanned without depending on the seed varies from step to step: unknown.
    """
    shapes = [tuple(var.aval.shape) for var in program.jaxpr.invars]
    first_carry, first_x = len(consts), len(consts) + len(carry)
    fixed = [k for k, value in enumerate(consts) if isinstance(value, Dependence)]
    slices = [k for k, value in enumerate(xs) if isinstance(value, Dependence)]
    active = [k for k, value in enumerate(carry) if isinstance(value, Dependence)]
    while True:
        spots = [*fixed, *(first_carry + k for k in active), *(first_x + k for k in slices)]
        local = dict(zip(spots, seeds([shapes[spot] for spot in spots]), strict=True))
        sizes = [int(np.prod(shapes[spot], dtype=int)) for spot in spots]
        inner = Context(sum(sizes), context.notes, context.budget // 4)
        inputs = [
            local.get(k, value if k < first_carry else None)
            for k, value in enumerate([*consts, *carry, *xs])
        ]
        outs = inner.run(program, inputs)
        woken = [k for k in range(len(carry)) if isinstance(outs[k], Dependence)]
        if set(woken) <= set(active):
            break
        active = sorted({*active, *woken})
    edges = np.cumsum([0, *sizes])
    return Body(
        [out.matrix() if isinstance(out, Dependence) else None for out in outs],
        [tuple(var.aval.shape) for var in program.jaxpr.outvars],
        [value for value in consts if isinstance(value, Dependence)],
        active,
        slices,
        (int(edges[len(fixed)]), int(edges[len(fixed) + len(active)]), int(edges[-1])),
    )


def _flat(parts: Sequence[Dependence], n: int) -> Dependence:
    """Several arrays as one, one after the other."""
    if not parts:
        return nothing((0,), n)
    parts = common(parts)
    return parts[0].moved(np.concatenate([part.ids.ravel() for part in parts]))


def _carried(body: Body, carry: Sequence[Value], n: int) -> list[Dependence]:
    return [_as_dependence(carry[k], body.shapes[k], n) for k in body.active]


def _as_dependence(value: Value, shape: tuple[int, ...], n: int) -> Dependence:
    return value if isinstance(value, Dependence) else nothing(shape, n)


def _returned(body: Body, carry: Sequence[Value], state: Sequence[Dependence]) -> list[Value]:
    """The carry, with the entries that depend on the seed replaced; the others have varied."""
    found = dict(zip(body.active, state, strict=True))
    return [found.get(k) for k in range(len(carry))]


def stepped_scan(
    context: Context, body: Body, eqn: JaxprEqn, carry: list[Value], xs: list[Value]
) -> list[Value]:
    """Compose the body's pattern once per iteration; stop when nothing changes any more."""
    n, length, state = context.n, eqn.params["length"], _carried(body, carry, context.n)
    scanned = [x for k in body.slices if isinstance(x := xs[k], Dependence)]
    rows: dict[int, list[Dependence | None]] = {}
    times = range(length)[::-1] if eqn.params["reverse"] else range(length)
    for t in times:
        here = _flat([*body.consts, *state, *(x.moved(x.ids[t]) for x in scanned)], n)
        outs = [
            None if flow is None else through(flow, here, shape)
            for flow, shape in zip(body.flows, body.shapes, strict=True)
        ]
        rows[t] = outs[len(carry) :]
        state = [_as_dependence(outs[k], body.shapes[k], n) for k in body.active]
    stacked = []
    for k, out in enumerate(eqn.outvars[len(carry) :]):
        parts = [_as_dependence(rows[t][k], shape_of(out)[1:], n) for t in range(length)]
        parts = common(parts)
        stacked.append(
            parts[0].moved(np.stack([part.ids for part in parts]))
            if body.flows[len(carry) + k] is not None
            else None
        )
    return [*_returned(body, carry, state), *stacked]


def closed_state(
    context: Context, body: Body, carry: Sequence[Value], slices: Sequence[Dependence]
) -> list[Value]:
    """The carry after any number of iterations, from none to all."""
    n, (start, stop, total) = context.n, body.edges
    state = _flat(_carried(body, carry, n), n)
    flows = [_as_flow(body.flows[k], body.shapes[k], total) for k in body.active]
    if not flows:
        return list(carry)
    flow = sparse.csr_array(sparse.vstack(flows, format="csr"))
    outside = _flat([*body.consts, nothing((stop - start,), n), *slices], n)
    source = join(state, through(flow, outside, state.shape))
    closed = _closure(sparse.csr_array(flow[:, start:stop]), source)
    edges = np.cumsum([0, *(int(np.prod(body.shapes[k], dtype=int)) for k in body.active)])
    pieces = [
        closed.moved(closed.ids[a:b].reshape(body.shapes[k]))
        for a, b, k in zip(edges, edges[1:], body.active, strict=False)
    ]
    return _returned(body, carry, pieces)


def _as_flow(flow: sparse.csr_array | None, shape: tuple[int, ...], total: int) -> sparse.csr_array:
    if flow is not None:
        return flow
    return sparse.csr_array((int(np.prod(shape, dtype=int)), total), dtype=bool)


def _closure(step: sparse.csr_array, source: Dependence) -> Dependence:
    """(I ∪ B ∪ B² ∪ …) applied to the sets in `source`."""
    count, labels = csgraph.connected_components(step, directed=True, connection="strong")
    size = len(labels)
    groups = sparse.csr_array((np.ones(size, bool), (labels, np.arange(size))), (count, size))
    reach = sparse.csr_array(groups @ step @ groups.T + sparse.eye_array(count, dtype=bool))
    reach.sum_duplicates()
    while True:
        wider = sparse.csr_array(reach @ reach)
        if wider.nnz == reach.nnz:
            break
        if wider.nnz > LIMIT:  # one part for all: never too small
            return _all_in_one(source)
        reach = wider
    parts = through(sparse.csr_array(reach @ groups), source, (count,))
    return parts.moved(parts.ids[labels])


def _all_in_one(source: Dependence) -> Dependence:
    total = unite(source, range(source.ids.ndim))
    return total.moved(np.broadcast_to(total.ids, source.shape))


def closed_scan(
    context: Context, body: Body, eqn: JaxprEqn, carry: list[Value], xs: list[Value]
) -> list[Value]:
    """A scan of any length: the closed carry, and outputs that read it and their own slices."""
    n, length, (_, stop, total) = context.n, eqn.params["length"], body.edges
    scanned = [x for k in body.slices if isinstance(x := xs[k], Dependence)]
    final = closed_state(context, body, carry, [unite(x, (0,)) for x in scanned])
    state = _carried(body, final, n)
    head = _flat([*body.consts, *state, nothing((total - stop,), n)], n)
    outs: list[Value] = []
    for flow, shape in zip(body.flows[len(carry) :], body.shapes[len(carry) :], strict=True):
        if flow is None:
            outs.append(None)
            continue
        shared = through(flow, head, shape)
        result = shared.moved(np.broadcast_to(shared.ids, (length, *shape)))
        if scanned:
            result = join(result, _from_slices(flow[:, stop:], scanned, (length, *shape)))
        outs.append(result)
    return [*final, *outs]


def _from_slices(
    flow: sparse.csr_array, scanned: list[Dependence], shape: tuple[int, ...]
) -> Dependence:
    """What each step's outputs read from that step's slices."""
    parts = common(scanned)
    table = np.concatenate([part.ids.reshape(shape[0], -1) for part in parts], axis=1)
    repeated = sparse.kron(sparse.eye_array(shape[0], dtype=bool), flow, format="csr")
    return through(sparse.csr_array(repeated), parts[0].moved(table), shape)
