"""Negative log likelihoods of classes, written in logits.

    binary cross-entropy    −y log σ(z) − (1 − y) log σ(−z)             y in [0, 1]
    cross-entropy           logsumexp(z) − z_y                          z (…, k), y in 0 … k − 1

Both are computed without forming a probability that could round to 0 or 1.
"""

from typing import Any

from wonderland.core.errors import InputError
from wonderland.losses.exponential import Logistic
from wonderland.losses.loss import Loss, agree, floating, namespace, within
from wonderland.losses.roots import entropy_term, newton_within, wright_omega
from wonderland.losses.softmax import logsumexp, one_hot, sigmoid, softmax, softplus

__all__ = ["BinaryCrossEntropy", "CrossEntropy"]

INF = float("inf")


class BinaryCrossEntropy(Loss):
    """The logistic loss for y ∈ {0, 1}, or any y between them: z is the logit of the mean.

    ℓ*(u, y) = q log q + (1 − q) log(1 − q) with q = u + y in [0, 1]. The multiplier of the dual
    form is |y − p|, as for the logistic loss.

    >>> BinaryCrossEntropy().value([-1e4, 0.0, 1e4], [0, 1, 1]).round(4)
    array([0.    , 0.6931, 0.    ])
    """

    convex = True
    smoothness = 0.25
    strong_convexity = 0.0
    classification_calibrated = True
    link = "logit"
    targets = "bits"

    def value(self, prediction: Any, target: Any) -> Any:
        """y softplus(−z) + (1 − y) softplus(z)."""
        z, y = agree(prediction, target)
        return y * softplus(-z) + (1.0 - y) * softplus(z)

    def derivative(self, prediction: Any, target: Any) -> Any:
        """σ(z) − y, without cancelling."""
        z, y = agree(prediction, target)
        return (1.0 - y) * sigmoid(z) - y * sigmoid(-z)

    def curvature(self, prediction: Any, target: Any) -> Any:
        """σ(z) σ(−z)."""
        z, _ = agree(prediction, target)
        return sigmoid(z) * sigmoid(-z)

    def conjugate(self, dual: Any, target: Any) -> Any:
        """The negative entropy of q = u + y."""
        u, y = agree(dual, target)
        return within(u + y, (0.0, 1.0), lambda q: entropy_term(q) + entropy_term(1.0 - q))

    def domain(self, target: Any) -> tuple[Any, Any]:
        """[−y, 1 − y]."""
        y, _ = agree(target, target)
        return -y, 1.0 - y

    def prox(self, point: Any, target: Any, step: Any) -> Any:
        """Minus the logistic prox of −(p + ty)."""
        p, y = agree(point, target)
        return -Logistic().phi_prox(-(p + step * y), step)

    def dual(self, multiplier: Any, target: Any) -> Any:
        """−ℓ*(−a(2y − 1), y): the entropy of a."""
        a, y = agree(multiplier, target)
        return -self.conjugate(-a * (2.0 * y - 1.0), y)


class CrossEntropy(Loss):
    """ℓ(z, y) = logsumexp(z) − z_y for z (…, k) and class numbers y (…,). L = ½.

    The derivative is softmax(z) − e_y (…, k), the curvature the diagonal of the Hessian
    diag(p) − ppᵀ (…, k), which has eigenvalues up to ½. ℓ*(u, y) = Σ q log q with q = u + e_y a
    probability vector, infinite elsewhere. The multipliers a (…, k) of the dual form are e_y − q.

    >>> CrossEntropy().value([[1e4, 0.0, -1e4], [0.0, 0.0, 0.0]], [0, 2]).round(4)
    array([0.    , 1.0986])
    """

    convex = True
    smoothness = 0.5
    strong_convexity = 0.0
    classification_calibrated = True
    link = "multinomial logit"
    targets = "classes"

    def value(self, prediction: Any, target: Any) -> Any:
        """logsumexp(z − z_y): nothing cancels where the class is certain."""
        z, chosen = _classes(prediction, target)
        xp = namespace(z)
        own = xp.sum(chosen * z, axis=-1, keepdims=True)
        return logsumexp(z - own)

    def derivative(self, prediction: Any, target: Any) -> Any:
        """softmax(z) − e_y."""
        z, chosen = _classes(prediction, target)
        return softmax(z) - chosen

    def curvature(self, prediction: Any, target: Any) -> Any:
        """p(1 − p), the diagonal of the Hessian (…, k)."""
        z, _ = _classes(prediction, target)
        p = softmax(z)
        return p * (1.0 - p)

    def curvature_product(self, prediction: Any, target: Any, direction: Any) -> Any:
        """(diag(p) − ppᵀ)d for d (…, k)."""
        z, _ = _classes(prediction, target)
        p = softmax(z)
        return p * (direction - (p * direction).sum(axis=-1, keepdims=True))

    def conjugate(self, dual: Any, target: Any) -> Any:
        """Σ q log q of q = u + e_y; infinite where q is not on the simplex up to rounding."""
        u, chosen = _classes(dual, target)
        xp, q = namespace(u), u + chosen
        rounding = 8 * q.shape[-1] * xp.finfo(q.dtype).eps
        inside = (q >= 0).all(axis=-1) & (xp.abs(q.sum(axis=-1) - 1.0) <= rounding)
        entropy = entropy_term(xp.maximum(q, 0.0)).sum(axis=-1)
        return xp.where(inside | xp.isnan(q).any(axis=-1), entropy, xp.inf)[()]

    def domain(self, target: Any) -> tuple[Any, Any]:
        """Not an interval: a simplex, which each number of classes has its own of."""
        raise InputError(
            "the conjugate of the cross-entropy is finite on a simplex",
            "a loss of one number",
            "Ask conjugate(u, y), finite where u + e_y is a probability vector",
        )

    def prox(self, point: Any, target: Any, step: Any) -> Any:
        """z = p + t(e_y − q) with q the softmax of z.

        For a given λ = logsumexp(z), tq_k + log tq_k = c_k − λ + log t with c = p + te_y, so that
        tq_k is Wright's ω; the λ at which q sums to one lies between logsumexp(c) − t and
        logsumexp(c).
        """
        p, chosen = _classes(point, target)
        xp = namespace(p, step)
        step = xp.asarray(step, p.dtype)
        step = step[..., None] if step.ndim else step
        c = p + step * chosen

        def total(lower: Any) -> tuple[Any, Any]:
            w = wright_omega(c + lower + xp.log(step))
            return (w / step).sum(axis=-1, keepdims=True) - 1.0, (w / (step * (1.0 + w))).sum(
                axis=-1, keepdims=True
            )

        low = -xp.expand_dims(logsumexp(c), -1)
        lower = newton_within(total, low, low + step, low)
        return c - wright_omega(c + lower + xp.log(step))

    def dual(self, multiplier: Any, target: Any) -> Any:
        """The entropy of q = e_y − a."""
        return -self.conjugate(-namespace(multiplier).asarray(multiplier), target)


def _classes(prediction: Any, target: Any) -> tuple[Any, Any]:
    """Scores (…, k) and the indicator of the class of each (…, k)."""
    xp = namespace(prediction, target)
    z = floating(prediction, xp)
    classes = xp.asarray(target)
    if z.ndim != classes.ndim + 1 or z.shape[:-1] != classes.shape:
        raise InputError(
            f"The prediction has shape {z.shape}, the target {classes.shape}",
            "scores (…, k) and one class number (…,) for each row of them",
            "Pass class numbers 0 … k − 1, not their indicators: np.argmax(indicators, axis=-1)",
        )
    return z, one_hot(classes, z.shape[-1]).astype(z.dtype)
