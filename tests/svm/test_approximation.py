"""Features of a low rank: their error bounds against the whole matrix, their fits against exact."""

import numpy as np
import pytest
import scipy.sparse as sp

import wonderland as wl
from wonderland.kernels.low_rank import WaveFeatures

RECIPES = [
    wl.kernels.Nystroem(40),
    wl.kernels.Nystroem(40, landmarks="pivots"),
    wl.kernels.Nystroem(3, landmarks=np.eye(3)),
    wl.kernels.PivotedCholesky(30, tolerance=1e-3),
]


def data(rng, n=300, d=3):
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_residual_is_exact(rng, recipe):
    """K − ΦΦᵀ is positive semi-definite, and its trace is what evidence says."""
    X, y = data(rng)
    kernel = wl.kernels.Gaussian(0.2)
    model = wl.KernelRidge(0.1, kernel=kernel, approximation=recipe, random_state=1).fit(X, y)
    phi = model.model_.features(X)
    left = kernel.matrix(X) - phi @ phi.T
    values = np.linalg.eigvalsh(left)
    assert values[0] > -1e-10
    claim = model.evidence_["approximation_error"]
    np.testing.assert_allclose(claim.value, np.trace(left), rtol=1e-8)
    assert values[-1] <= claim.value
    assert np.abs(left).max() <= claim.value


def test_full_rank_is_the_exact_fit(rng):
    X, y = data(rng, n=60)
    exact = wl.KernelRidge(0.1, kernel="rbf").fit(X, y)
    for recipe in (wl.kernels.Nystroem(60), wl.kernels.PivotedCholesky(60, tolerance=0.0)):
        same = wl.KernelRidge(0.1, kernel="rbf", approximation=recipe).fit(X, y)
        np.testing.assert_allclose(same.predict(X), exact.predict(X), rtol=1e-6, atol=1e-7)
        for name in ("primal", "leave_one_out_error"):
            np.testing.assert_allclose(
                same.evidence_[name].value, exact.evidence_[name].value, rtol=1e-6
            )
        assert same.evidence_["approximation_share"].value < 1e-9


def test_the_fit_is_the_optimum_on_its_features(rng):
    X, y = data(rng)
    weight = rng.uniform(0.2, 2.0, size=len(X))
    Y = np.column_stack([y, X[:, 0]])
    model = wl.KernelRidge([0.1, 2.0], kernel="rbf", approximation=RECIPES[0], random_state=0)
    model.fit(X, Y, sample_weight=weight)
    phi = model.model_.features(X)
    for k, alpha in enumerate((0.1, 2.0)):
        A = phi.T @ (weight[:, None] * phi) + alpha * np.eye(phi.shape[1])
        w = np.linalg.solve(A, phi.T @ (weight * Y[:, k]))
        np.testing.assert_allclose(model.dual_coef_[:, k], w, rtol=1e-8, atol=1e-8)
    assert not model.evidence_.failing
    assert model.evidence_["duality_gap"].value <= 1e-9 * model.evidence_["primal"].value


def test_pivots_stop_at_the_tolerance(rng):
    X, _ = data(rng, n=200)
    kernel = wl.kernels.Gaussian(0.05)
    for tolerance in (1e-1, 1e-3):
        recipe = wl.kernels.PivotedCholesky(200, tolerance)
        phi = recipe.features(kernel, X, rng)
        left = 1.0 - (phi(X) ** 2).sum() / len(X)
        assert left <= tolerance * 1.01
        assert phi.rank < 200


@pytest.mark.parametrize(
    "kernel",
    [
        wl.kernels.Gaussian(0.3),
        wl.kernels.Laplace(0.2),
        wl.kernels.Matern(2.0, 0.5),
        wl.kernels.Matern(2.0, 1.5),
        wl.kernels.Matern(2.0, 2.5),
        wl.kernels.Gaussian(0.1) * wl.kernels.Laplace(0.1),
        3.0 * wl.kernels.Gaussian(0.3),
    ],
    ids=str,
)
def test_random_features_keep_their_bound(rng, kernel):
    X, _ = data(rng, n=150)
    phi = wl.kernels.RandomFeatures(3000).features(kernel, X, rng)
    assert isinstance(phi, WaveFeatures)
    error = np.abs(phi(X) @ phi(X).T - kernel.matrix(X)).max()
    (claim,) = phi.claims(0.0, 0.0, X)
    assert error <= claim.bound
    assert claim.holds
    # The largest of many sums of 1500 bounded terms: some deviations of 1/√3000 each.
    assert error <= 6.0 * float(kernel(X[0], X[0])) / np.sqrt(3000)


def test_random_features_need_a_stationary_kernel(rng):
    X, y = data(rng, n=20)
    for kernel in ("linear", "poly", wl.kernels.Gaussian() + wl.kernels.Linear()):
        with pytest.raises(wl.InputError, match="no function of x − z"):
            wl.KernelRidge(kernel=kernel, approximation=wl.kernels.RandomFeatures(10)).fit(X, y)


def test_sparse_tables(rng):
    X, y = data(rng, n=80)
    X[X < 0] = 0.0
    for recipe in (wl.kernels.Nystroem(20), wl.kernels.RandomFeatures(30)):
        model = wl.KernelRidge(0.1, kernel="rbf", approximation=recipe, random_state=0)
        dense = model.fit(X, y).predict(X)
        table = sp.csr_array(X)
        np.testing.assert_allclose(model.fit(table, y).predict(table), dense, rtol=1e-6, atol=1e-7)


def test_chunks_give_the_fit_of_the_table(rng):
    """With landmarks given, one pass over chunks is the fit in memory."""
    X, y = data(rng, n=5000)
    recipe = wl.kernels.Nystroem(25, landmarks=X[:25])
    model = wl.KernelRidge(0.3, kernel="rbf", gamma=0.2, approximation=recipe)
    whole = model.fit(X, y)
    expected, error = whole.predict(X[:50]), whole.evidence_["approximation_error"].value
    parts = model.fit([(X[i : i + 700], y[i : i + 700]) for i in range(0, 5000, 700)])
    np.testing.assert_allclose(parts.predict(X[:50]), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(parts.evidence_["approximation_error"].value, error, rtol=1e-9)
    drawn = wl.KernelRidge(
        0.3, kernel="rbf", gamma=0.2, approximation=wl.kernels.RandomFeatures(200), random_state=0
    )
    drawn.fit(iter([(X[:3000], y[:3000]), (X[3000:], y[3000:])]))
    assert drawn.score(X, y) > 0.9


def test_wrong_recipes_are_told(rng):
    X, y = data(rng, n=20)
    with pytest.raises(wl.InputError, match="Nystroem"):
        wl.KernelRidge(approximation="nystroem").fit(X, y)
    with pytest.raises(wl.InputError, match="approximation"):
        wl.KernelRidge("loo", approximation=wl.kernels.Nystroem(5)).fit(X, y)
    with pytest.raises(wl.InputError, match="approximation"):
        wl.KernelRidge().fit([(X, y)])
    with pytest.raises(wl.InputError, match="negative eigenvalue"):
        wl.KernelRidge(
            kernel=wl.kernels.Sigmoid(1.0, -1.0), approximation=wl.kernels.Nystroem(15)
        ).fit(X, y)
    for wrong in (
        lambda: wl.kernels.Nystroem(0),
        lambda: wl.kernels.Nystroem(5, landmarks="all"),
        lambda: wl.kernels.PivotedCholesky(5, tolerance=2.0),
        lambda: wl.kernels.RandomFeatures(1.5),
    ):
        with pytest.raises(wl.InputError):
            wrong()


def test_parquet_is_read_once(rng, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = data(rng, n=4000)
    columns = {f"x{j}": X[:, j] for j in range(3)} | {"y": y}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=500)
    recipe = wl.kernels.Nystroem(25, landmarks=X[:25])
    model = wl.KernelRidge(0.3, kernel="rbf", gamma=0.2, approximation=recipe)
    expected = model.fit(X, y).predict(X[:20])
    model.fit(str(tmp_path / "rows.parquet"), "y")
    names = list(model.feature_names_in_)
    assert names == ["x0", "x1", "x2"]
    np.testing.assert_allclose(model.model_.predict(X[:20]), expected, rtol=1e-7, atol=1e-8)
