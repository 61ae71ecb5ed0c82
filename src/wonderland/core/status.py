"""How a fit ended: each status is a sentence, and says what to try when it is not the best one."""

from enum import IntEnum

__all__ = ["Status"]


class Status(IntEnum):
    """The end of a fit, as a number that survives `jit` and a sentence for people.

    >>> Status.CONVERGED.ok, Status.ITERATIONS.ok
    (True, False)
    >>> print(Status.CONVERGED.sentence)
    The certificate fell below the tolerance.
    """

    RUNNING = 0
    SOLVED = 1
    CONVERGED = 2
    STALLED = 3
    ITERATIONS = 4
    TIME = 5
    INTERRUPTED = 6
    DIVERGED = 7
    SINGULAR = 8
    SEPARATED = 9
    NO_MISTAKES = 10
    TRAINING_STALL = 11
    VALIDATION_STALL = 12
    CYCLE = 13
    EPOCHS = 14

    @property
    def ok(self) -> bool:
        """Whether the fit reached the standard that was asked of it."""
        return self in (
            Status.SOLVED,
            Status.CONVERGED,
            Status.STALLED,
            Status.NO_MISTAKES,
            Status.TRAINING_STALL,
            Status.VALIDATION_STALL,
            Status.EPOCHS,
        )

    @property
    def sentence(self) -> str:
        """What happened, and what to do about it."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.RUNNING: "The fit is still running.",
    Status.SOLVED: "A direct method solved the problem to the accuracy stated in `digits`.",
    Status.CONVERGED: "The certificate fell below the tolerance.",
    Status.STALLED: "The squared step ‖w_{t+1} − w_t‖² fell below `step_tol` or to rounding.",
    Status.ITERATIONS: (
        "The iteration limit was reached before the tolerance: raise max_iter, loosen tol, "
        "scale the columns, or use a direct solver."
    ),
    Status.TIME: "The time limit was reached before the tolerance: raise time_limit or loosen tol.",
    Status.INTERRUPTED: "The fit was interrupted; the best iterate so far was kept.",
    Status.DIVERGED: (
        "The iterates left the finite numbers: the step is too long for this curvature. "
        "Leave the step to the solver, or scale the columns."
    ),
    Status.SINGULAR: (
        "The columns are dependent and nothing penalises them: pass alpha > 0, drop a column, or "
        "call the estimator on host arrays, where the minimum-norm solution is computed."
    ),
    Status.SEPARATED: (
        "The classes can be separated, so that no maximum-likelihood estimate exists: the longer "
        "the coefficients, the better. The fit stopped on the way; evidence_['separable'] holds "
        "the proof. Pass a finite C, or drop the columns that separate."
    ),
    Status.NO_MISTAKES: "A whole pass made no mistake: every training sample is on its own side.",
    Status.TRAINING_STALL: "The training loss no longer fell by `tol`.",
    Status.VALIDATION_STALL: "The score on the samples set aside no longer rose by `tol`.",
    Status.CYCLE: (
        "The coefficients came back to where they had been: in this order the run would go round "
        "for ever, and no plane separates the classes. Pass tol=1e-3, shuffle=True, or use "
        "wl.LinearSVC or wl.LogisticRegression, which allow for mistakes."
    ),
    Status.EPOCHS: "All epochs that were asked for have been run.",
}
