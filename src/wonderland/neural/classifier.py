"""Classification by a multilayer perceptron.

    minimise over W, b:   Σ_i ω_i ℓ(f(x_i), y_i)/Σ_i ω_i  +  α/(2b) Σ_l ‖W_l‖²

by minibatches of b samples; ℓ is the cross-entropy of logistic (two classes, labels) or softmax
(k classes) outputs. Shapes: X (n, d), W_l (c_{l−1}, c_l), f (1,) for two classes, else (k,).

Reference: Rumelhart, Hinton & Williams (1986); Kingma & Ba (2015).
"""

from typing import Any, Self

import numpy as np

from wonderland.core.errors import InputError
from wonderland.neural.committee import CLASSES_SETTING, Setting
from wonderland.neural.estimator import Network, dense
from wonderland.neural.heads import BITS, CLASSES, LABELS, Head
from wonderland.neural.network import Data
from wonderland.shell.classifier import Classifier
from wonderland.shell.inputs import Classes, read_classes, read_table
from wonderland.shell.parts import read_part
from wonderland.shell.streams import is_stream

__all__ = ["MLPClassifier"]

HEADS = {head.name: head for head in (BITS, CLASSES, LABELS)}


class MLPClassifier(Network, Classifier):
    """A multilayer perceptron for classes, or for labels of which several may hold.

    Parameters, defaults and attributes are scikit-learn's; a whole epoch is one compiled program,
    in float32. A sparse table is written out densely.

    Args:
        hidden_layer_sizes: Widths of the hidden layers.
        activation: "identity", "logistic", "tanh", "relu", or any name or function of `wl.nn`.
        solver: "adam", "sgd", or "lbfgs" (all samples at once, in float64).
        alpha: α.
        batch_size: b; "auto" is 200, or all samples where there are fewer.
        learning_rate: For "sgd": "constant", "invscaling" or "adaptive".
        learning_rate_init: η_0.
        power_t: Exponent of "invscaling".
        max_iter: Most epochs (steps of "lbfgs").
        shuffle: Whether each epoch has an order of its own.
        random_state: Seed of weights, orders, masks and the validation part.
        tol: An epoch is an improvement when it lowers the loss (raises the score) by more; for
            "lbfgs" the largest |entry| of the gradient.
        verbose: Whether a terminal shows a progress line.
        warm_start: Whether to begin with the weights of the last fit.
        momentum: Of "sgd".
        nesterovs_momentum: Whether it is Nesterov's.
        early_stopping: Whether to set samples aside, stop when their score no longer rises and
            keep the best weights.
        validation_fraction: The share set aside.
        beta_1, beta_2, epsilon: Of "adam".
        n_iter_no_change: Epochs without improvement before stopping.
        max_fun: Most values of the objective, for "lbfgs".
        class_weight: None, "balanced", or label → weight.
        architecture: "mlp", or "table": a committee of residual networks over the columns as they
            are (numbers with holes, categories as text), with nothing to tune; of the parameters
            here only `random_state` and `class_weight` are then asked.
        dropout: The rate behind each hidden layer.
        norm: None, "batch" or "layer", behind each hidden linear layer.
        weight_decay: λ of w ← w − ηλw, on matrices only.
        schedule: A name or object of `wl.training` for the learning rate, for any solver.
        time_limit: Most seconds.
        recipe: A `wl.training.Recipe`: how to train altogether; then solver, batch size, learning
            rate, stopping, … above are not asked.

    Attributes:
        coefs_, intercepts_, loss_, loss_curve_, best_loss_, validation_scores_,
            best_validation_score_, n_iter_, t_, n_layers_, n_outputs_, out_activation_: As in
            scikit-learn; `loss_` and the curve are those of the data, without the penalty.
        history_: The record of each epoch, as arrays.
        evidence_: Claims: training_curve, gradient_norm, dead_units, generalisation_gap, ….
        model_: The fitted function as an `equinox.Module`.

    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = ["same", "other", "other", "same"]
    >>> xor = MLPClassifier((8,), solver="lbfgs", random_state=1).fit(X, y)
    >>> xor.predict(X).tolist()
    ['same', 'other', 'other', 'same']
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: Any = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        class_weight: Any = None,
        architecture: str = "mlp",
        dropout: float = 0.0,
        norm: str | None = None,
        weight_decay: float = 0.0,
        schedule: Any = None,
        time_limit: float | None = None,
        recipe: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.class_weight = class_weight
        self.architecture = architecture
        self.dropout = dropout
        self.norm = norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.time_limit = time_limit
        self.recipe = recipe

    def __sklearn_tags__(self) -> Any:
        """Several labels of a sample are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _learn(self, *data: Any) -> dict[str, Any]:
        X, y, sample_weight = data
        if is_stream(X):
            return self._learn_stream(X, y, sample_weight)
        if self.architecture == "table":
            return self._learn_table(X, y, sample_weight)
        table = self._read_target(X, y, sample_weight)
        self._check_warm(table)
        return {**self._fixed(table), **self._fit(table)}

    def _read_target(self, X: Any, y: Any, sample_weight: Any) -> Classes:
        return _read_labels(self, X, y, sample_weight)

    def _setting(self) -> Setting:
        return CLASSES_SETTING

    def _check_warm(self, table: Classes) -> None:
        known = getattr(self, "classes_", None)
        if self._warm() and known is not None and not np.array_equal(known, table.classes):
            raise InputError(
                f"warm_start can only be used where `y` has the same classes as in the previous "
                f"call to fit: previously {list(known)}, now {list(table.classes)}",
                "the same classes",
                "Pass warm_start=False",
            )

    def _encoded(self, table: Classes) -> tuple[Head, int, Data]:
        X = dense(table.X).astype(np.float32)
        head, outputs = head_of(table)
        return head, outputs, Data(X, table.codes.astype(np.int32), table.weight)

    def _fixed(self, table: Classes) -> dict[str, Any]:
        names = table.target if isinstance(table.target, list) else [table.target]
        return {
            "classes_": table.classes,
            "target_names_": names,
            "head_": head_of(table)[0].name,
        }

    def _head(self) -> Head:
        return HEADS[self.head_]

    def _scores(self, X: Any) -> np.ndarray:
        raw = self._raw(X)
        if raw.ndim == 3:
            raw = _agreed(raw, self.head_)
        return raw[:, 0] if self.head_ == "bits" else raw

    def _probabilities(self, X: Any) -> np.ndarray:
        raw = self._raw(self._read(X))
        return probabilities(_agreed(raw, self.head_) if raw.ndim == 3 else raw, self.head_)

    def predict(self, X: Any) -> Any:
        """The likeliest class (n,), or which labels hold (n, k)."""
        scores = self._scores(self._read(X))
        if self.head_ == "labels":
            return self._contain((scores > 0).astype(int), X)
        return self._contain(self.classes_[self._decide(scores)], X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, k): of the classes, or of each label by itself."""
        return self._labelled(self._probabilities(X), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities (n, k)."""
        with np.errstate(divide="ignore"):
            return self._labelled(np.log(self._probabilities(X)), X)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Self:
        """One epoch over these samples, from where the last one ended.

        Args:
            X: (n, d).
            y: Labels (n,).
            sample_weight: (n,) ≥ 0.
            classes: All labels there will be; needed in the first call.
        """
        return self._continue(X, y, sample_weight, classes)

    def _read_whole(self, X: Any, y: Any, sample_weight: Any) -> Classes:
        return _read_labels(self, X, y, sample_weight)

    def _read_part(self, *arguments: Any) -> Classes:
        X, y, sample_weight, classes = arguments
        known = getattr(self, "classes_", None)
        return read_part(self, X, y, sample_weight, known if classes is None else classes)


def head_of(table: Classes) -> tuple[Head, int]:
    """The head and the number of raw outputs."""
    k = len(table.classes)
    if table.codes.ndim == 2:
        return LABELS, k
    return (BITS, 1) if k == 2 else (CLASSES, k)


def probabilities(raw: np.ndarray, head: str) -> np.ndarray:
    """Probabilities (n, k) from raw outputs, in float64."""
    if head == "classes":
        p = np.exp(raw - raw.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)
    small = np.exp(-np.abs(raw))
    p = np.where(raw >= 0, 1.0, small) / (1.0 + small)
    return p if head == "labels" else np.hstack([1.0 - p, p])


def _agreed(raw: np.ndarray, head: str) -> np.ndarray:
    """Raw outputs (n, c) whose probabilities are the mean of those of members (n, K, c)."""
    if head == "classes":
        top = raw.max(axis=2, keepdims=True)
        each = raw - top - np.log(np.exp(raw - top).sum(axis=2, keepdims=True))
        best = each.max(axis=1, keepdims=True)
        return np.log(np.exp(each - best).mean(axis=1)) + best[:, 0]
    # log p and log(1 − p) apart, so that neither rounds to zero.
    yes, no = -np.logaddexp(0.0, -raw), -np.logaddexp(0.0, raw)
    return np.logaddexp.reduce(yes, axis=1) - np.logaddexp.reduce(no, axis=1)


def _read_labels(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Classes:
    """Validated labels; a table of zeros and ones is several labels a sample."""
    shape = np.asarray(y).shape
    if len(shape) != 2 or shape[1] < 2:
        return read_classes(
            estimator, X, y, sample_weight, class_weight=estimator.class_weight, sparse=True
        )
    table = read_table(estimator, X, y, sample_weight)
    if not np.isin(table.y, (0.0, 1.0)).all():
        raise InputError(
            f"y has {shape[1]} columns that hold other numbers than 0 and 1",
            "one class (n,), or an indicator (n, k) of the labels that hold",
            "Pass one column of labels; sklearn.multioutput.MultiOutputClassifier takes several",
        )
    return Classes(
        X=table.X,
        codes=table.y.astype(int),
        classes=np.arange(shape[1]),
        weight=table.weight,
        names=table.names,
        target=table.targets,  # type: ignore[arg-type]  # one name for each label
        dtype=table.dtype,
    )
