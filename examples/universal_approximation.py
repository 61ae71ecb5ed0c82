"""Universal approximation, seen: the error of a network against its width, and against its depth.

A network with one hidden layer comes as close as one likes to a continuous function, if it is wide
enough; the theorem promises no more. Here the largest error on a fine grid is measured for

    f(x) = sin(3πx)·e^{−x} + |x|/2   on [−1, 1]

while the width grows, and while layers of four neurons are stacked. Each network is fitted by
L-BFGS from three seeds and the best counts: approximation is asked about, not luck.

    python examples/universal_approximation.py [picture.png]
"""

import sys
import warnings

import numpy as np

import wonderland as wl

WIDTHS = (2, 4, 8, 16, 32)
DEPTHS = (1, 2, 3)
X = np.linspace(-1, 1, 200)[:, None]


def target(X: np.ndarray) -> np.ndarray:
    """The function to come close to."""
    x = X[:, 0]
    return np.sin(3 * np.pi * x) * np.exp(-x) + np.abs(x) / 2


def error(layers: tuple[int, ...]) -> float:
    """The least of the largest errors |f − g| over three seeds."""
    grid = np.linspace(-1, 1, 1000)[:, None]
    errors = []
    for seed in range(3):
        network = wl.MLPRegressor(
            hidden_layer_sizes=layers,
            activation="tanh",
            solver="lbfgs",
            alpha=0.0,
            tol=1e-7,
            max_iter=1500,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the last digits of the minimum are not needed
            network.fit(X, target(X))
        errors.append(np.abs(network.predict(grid) - target(grid)).max())
    return float(min(errors))


def picture(by_width: list[float], by_depth: list[float], path: str) -> None:
    """Both curves, errors on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    left.loglog(WIDTHS, by_width, "o-", base=2)
    left.set(xlabel="neurons in one hidden layer", ylabel="largest error", yscale="log")
    right.semilogy(DEPTHS, by_depth, "o-")
    right.set(xlabel="hidden layers of four neurons", xticks=DEPTHS)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, print, and draw where a path is given."""
    by_width = [error((width,)) for width in WIDTHS]
    by_depth = [error((4,) * depth) for depth in DEPTHS]
    for width, worst in zip(WIDTHS, by_width, strict=True):
        print(f"width {width:3d}, depth 1: largest error {worst:.4f}")
    for depth, worst in zip(DEPTHS, by_depth, strict=True):
        print(f"width   4, depth {depth}: largest error {worst:.4f}")
    if by_width[-1] > 0.2 * by_width[0] or by_depth[-1] > by_depth[0]:
        raise SystemExit("the error did not fall")
    if len(sys.argv) > 1:
        picture(by_width, by_depth, sys.argv[1])


if __name__ == "__main__":
    main()
