"""Fourier: the definition, its orthogonality on one period, refused numbers."""

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.errors import InputError


def test_the_definition(rng):
    X = rng.uniform(-5, 5, size=(6, 2))
    found = wl.bases.Fourier(3, period=4.0)(X)
    column = 0
    for j in range(1, 4):
        for wave in (np.sin, np.cos):
            for v in range(2):
                expected = wave(2 * np.pi * j * X[:, v] / 4.0)
                np.testing.assert_allclose(found[:, column], expected, atol=1e-13)
                column += 1
    assert column == found.shape[1]


def test_columns_are_orthogonal_over_a_period():
    X = np.linspace(0, 3.0, 64, endpoint=False)[:, None]
    columns = wl.bases.Fourier(5, period=3.0)(X)
    np.testing.assert_allclose(columns.T @ columns, 32 * np.eye(10), atol=1e-10)


def test_names_follow_the_columns():
    names = wl.bases.Fourier(2).names(["a", "b"])
    assert names[:4] == ["sin 1·a", "sin 1·b", "cos 1·a", "cos 1·b"]
    assert names[4:] == ["sin 2·a", "sin 2·b", "cos 2·a", "cos 2·b"]


@pytest.mark.parametrize(
    ("k", "period"),
    [(0, 1.0), (-1, 1.0), (2, 0.0), (2, -1.0), (2, math.nan), ("2", 1.0), (1.5, 1.0)],
)
def test_refused_numbers(k, period):
    with pytest.raises(InputError, match="harmonics"):
        wl.bases.Fourier(k, period=period)


def test_a_wave_is_found(rng):
    x = rng.uniform(0, 12, size=(200, 1))
    y = 1.0 + 2.0 * np.sin(2 * np.pi * x[:, 0] / 12) - 0.5 * np.cos(4 * np.pi * x[:, 0] / 12)
    model = wl.LinearRegression(basis=wl.bases.Fourier(2, period=12)).fit(x, y)
    np.testing.assert_allclose(model.coef_, [2.0, 0.0, 0.0, -0.5], atol=1e-12)
