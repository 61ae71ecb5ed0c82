"""The fixtures scikit-learn's test files ask for; their warnings are their own business."""

import numpy as np
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Marks that their files use and ours do not."""
    config.addinivalue_line("markers", "thread_unsafe: not to be run in several threads at once")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Their tests warn on purpose (solvers that do not converge, ill-conditioned matrices)."""
    for item in items:
        if "suites" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def global_random_seed(rng: np.random.Generator) -> int:
    """A seed of our run's choosing, in the range scikit-learn itself uses."""
    return int(rng.integers(100))


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def global_dtype(request: pytest.FixtureRequest) -> type:
    """Both floating types."""
    return request.param
