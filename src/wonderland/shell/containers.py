"""Predictions in the container asked for by `set_output`, with the index and names of the input."""

from typing import Any

import numpy as np

from wonderland.core.errors import InputError, nearest, optional

__all__ = ["CONTAINERS", "check_container", "wrap"]

CONTAINERS = ("default", "pandas", "polars")


def check_container(name: str | None) -> str | None:
    """Refuse an unknown container name."""
    if name is not None and name not in CONTAINERS:
        raise InputError(
            f"output container {name!r}", " or ".join(CONTAINERS), nearest(name, CONTAINERS)
        )
    return name


def wrap(values: np.ndarray, container: str, X: Any, names: list[str]) -> Any:
    """A (n,) or (n, t) array as the series or frame asked for."""
    if container == "pandas":
        pd = optional("pandas", "frames")
        index = getattr(X, "index", None)
        index = index if isinstance(index, pd.Index) else None
        if values.ndim == 1:
            return pd.Series(values, index=index, name=names[0])
        return pd.DataFrame(values, index=index, columns=names)
    if container == "polars":
        pl = optional("polars", "frames")
        if values.ndim == 1:
            return pl.Series(names[0], values)
        return pl.DataFrame(values, schema=names)
    return values
