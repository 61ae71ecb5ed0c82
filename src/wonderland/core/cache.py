"""The compile cache: what XLA compiled once on a machine is read back by later processes.

Set only when nobody has set one (`jax_compilation_cache_dir` or `JAX_COMPILATION_CACHE_DIR`), and
never when the environment says `WONDERLAND_COMPILE_CACHE=off`; any other value names the folder.
"""

import os
from pathlib import Path

__all__ = ["enable_compile_cache"]

SWITCH = "WONDERLAND_COMPILE_CACHE"


def enable_compile_cache() -> Path | None:
    """Point JAX at a persistent cache; returns the folder in use, or None when switched off."""
    import jax

    chosen = os.environ.get(SWITCH, "")
    if chosen.lower() in {"off", "0", "false", "no"}:
        return None
    current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if current:
        return Path(current)
    folder = Path(chosen) if chosen else _default_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None  # a read-only home costs only compile time
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Small programs are the common case here: keep them too, however quickly they compiled.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)
    return folder


def _default_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "wonderland" / "xla"
