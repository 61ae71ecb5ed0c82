"""What each way to a Jacobian costs, before any of it runs.

A product J s costs what the tangent program does beyond f itself, a product uᵀJ what the cotangent
program does; one evaluation of f is shared by all products of a mode. Writing the result counts.
"""

from typing import NamedTuple

from jax.extend.core import ClosedJaxpr

from .costs import BYTE, Cost, cost_of, effort

__all__ = ["Price", "Rates", "rates"]


class Price(NamedTuple):
    """What one mode would do.

    Attributes:
        mode: Its name.
        products: Products of J with vectors it runs.
        flops: Arithmetic operations.
        memory: Bytes alive at once, the result included.
        effort: Operations and traffic on one scale, which decides.
    """

    mode: str
    products: int
    flops: float
    memory: float
    effort: float


class Rates(NamedTuple):
    """Costs of one evaluation and of one product each way; None where JAX has no such mode.

    Attributes:
        value: f itself.
        forward: One product J s beyond f.
        reverse: One product uᵀJ beyond f.
    """

    value: Cost
    forward: Cost | None
    reverse: Cost | None

    def price(
        self, mode: str, products: tuple[int, int], written: int, gathered: int = 0
    ) -> Price | None:
        """Price `products` = (forward, reverse) and a result of `written` bytes.

        Args:
            mode: Name for the table.
            products: How many of each kind.
            written: Bytes of the result.
            gathered: Bytes read to pick the entries out of the products.
        """
        used = [
            (count, rate)
            for count, rate in zip(products, (self.forward, self.reverse), strict=True)
            if count
        ]
        if any(rate is None for _, rate in used):
            return None
        spent = [(count, rate) for count, rate in used if rate is not None]
        flops = self.value.flops + sum(count * rate.flops for count, rate in spent)
        memory = written + max((count * rate.peak for count, rate in spent), default=0)
        work = effort(self.value) + sum(count * effort(rate) for count, rate in spent)
        total = work + BYTE * (2 * written + gathered)
        return Price(mode, sum(products), flops, memory, total)

    def one(self, *, forward: bool) -> float:
        """Effort of one product; infinite where the mode does not exist."""
        rate = self.forward if forward else self.reverse
        return float("inf") if rate is None else effort(rate)


def rates(value: ClosedJaxpr, forward: object, reverse: object) -> Rates:
    """Rates from the programs of f, J s and uᵀJ; the latter two include an evaluation of f."""
    base = cost_of(value)
    found = [
        _beyond(cost_of(program), base) if isinstance(program, ClosedJaxpr) else None
        for program in (forward, reverse)
    ]
    return Rates(base, found[0], found[1])


def _beyond(both: Cost, base: Cost) -> Cost:
    """The part of a derivative program that is repeated for each product."""
    return Cost(
        max(both.flops - base.flops, both.flops // 4),
        max(both.bytes - base.bytes, both.bytes // 4),
        both.peak,
        max(both.transcendentals - base.transcendentals, 0),
    )
