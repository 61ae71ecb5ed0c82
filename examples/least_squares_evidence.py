"""What a fit knows about itself: digits, conditioning, collinear columns, intervals that cover.

The data are Longley's sixteen years of the American economy in miniature: columns that grow
together, where many a solver loses half of its digits without saying so.
"""

import numpy as np

import wonderland as wl


def economy(years: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Four columns that all follow one trend, and employment that depends on two of them."""
    chance = np.random.default_rng(1967)
    trend = np.arange(years, dtype=float)
    output = 230_000 + 21_000 * trend + chance.normal(0, 3_000, years)
    population = 107_000 + 1_500 * trend + chance.normal(0, 60, years)
    forces = 1_500 + 120 * trend + chance.normal(0, 300, years)
    X = np.column_stack([output, population, forces, 1947 + trend])
    y = 0.04 * output - 0.6 * forces + chance.normal(0, 150, years)
    return X, y


def main() -> None:
    X, y = economy()
    model = wl.LinearRegression().fit(X, y)
    print(model.evidence_, "\n")

    print("coefficient ± standard error, and the 95% interval")
    low, high = model.confidence_interval(0.95)
    for row in zip(model.coef_, model.standard_errors_, low, high, strict=True):
        print("{:12.5g} ± {:<10.3g} {:12.5g} … {:.5g}".format(*row))

    # A column that is the sum of two others: the fit goes on, and names it.
    repeated = np.column_stack([X, X[:, 0] + X[:, 2]])
    answered = wl.LinearRegression().fit(repeated, y)
    print("\nwith a dependent column:", answered.evidence_["collinear"].value)
    print("rank", answered.rank_, "of", repeated.shape[1], "columns,", answered.status_.sentence)
    assert np.allclose(answered.predict(repeated), model.predict(X), rtol=1e-6)

    # Evidence from years the fit has not seen.
    X_test, y_test = economy(40)
    print("\n", wl.verify(model, X_test[16:], y_test[16:])["coverage"], sep="")


if __name__ == "__main__":
    main()
