"""The same function and derivative, in the memory there is.

Reverse mode holds every value it will read back. `checkpoint` holds only some, chosen by an
optimisation, and computes the others a second time when they are needed:

    budget    "512MB", a fraction of the plain peak, bytes; the memory of compiled programs
    chain     the program cut into stages, where little crosses
    options   what a stage may keep, value by value: a minimum cut
    loops     what a `scan` may keep: segments, and values of its body
    schedule  when to recompute which stages: dynamic programming, for every budget at once
    run       the schedule as a function with its reverse pass
    plan      the search by compiled memory, and the table
"""

from wonderland.autodiff.checkpoint.function import Checkpointed, checkpoint
from wonderland.autodiff.checkpoint.plan import CheckpointPlan, Row

__all__ = ["CheckpointPlan", "Checkpointed", "Row", "checkpoint"]
