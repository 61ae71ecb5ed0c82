"""Every example runs, in a process of its own, with warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    if "arrow" in path.read_text(encoding="utf-8"):
        pytest.importorskip("pyarrow")
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows something"


def test_there_are_examples():
    assert len(EXAMPLES) >= 3
    assert all(path.read_text(encoding="utf-8").startswith('"""') for path in EXAMPLES)
