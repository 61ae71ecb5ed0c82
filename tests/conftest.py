"""What every test stands on: a fresh seed, strict JAX, checked annotations, sane threads.

Each run draws a new seed and prints it when something fails; repeat a run with
`WONDERLAND_TEST_SEED=<seed> python -m pytest …`.
"""

import os
import random
import zlib
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
import threadpoolctl
from jaxtyping import install_import_hook

import tests.typecheck  # the hook finds it by this name

# The inside is checked; the doors (shell, estimators, bases) explain wrong types by themselves.
CHECKED = ["wonderland.core", "wonderland.solve"]
install_import_hook(CHECKED, f"{tests.typecheck.__name__}.checked")

SEED = "WONDERLAND_TEST_SEED"
ROOT = Path(__file__).resolve().parents[1]

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Small matrices on many threads wait for one another; two keep the parallel paths honest.
threadpoolctl.threadpool_limits(2)
hypothesis.settings.register_profile(
    "wonderland",
    deadline=None,
    max_examples=20,
    print_blob=True,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        # Each example draws its own generator; the fixtures it shares are never written to.
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("wonderland")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of this run, once: workers of a parallel run inherit it."""
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(2**31)))
    hypothesis.core.global_force_seed = int(os.environ[SEED])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Say beside every failure how to see it again."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections.append(("seed", f"repeat with {SEED}={os.environ[SEED]}"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator of its own for each test, drawn from the seed of the run."""
    name = zlib.crc32(request.node.nodeid.encode())
    return np.random.default_rng([int(os.environ[SEED]), name])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of reference data beside the project; tests that need it skip without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the reference data (a folder shared/data beside the project) is not here")
    return folder
