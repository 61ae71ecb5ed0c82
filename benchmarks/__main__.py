"""Run one benchmark by name.

    python -m benchmarks --list              what there is
    python -m benchmarks NAME [--json] …     run it; further arguments go to the benchmark
    python -m benchmarks NAME --help         its own arguments

Results are printed, never edited by hand into a document.
"""

import ast
import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent


def available() -> dict[str, str]:
    """Benchmark name → first line of its docstring; read without importing anything."""
    found = {}
    for path in sorted([*FOLDER.glob("[!_]*.py"), *FOLDER.glob("[!_]*/__init__.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            name = path.parent.name if path.stem == "__init__" else path.stem
            found[name] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark named first, or say which there are."""
    known = available()
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__)
        return 0 if arguments else 2
    if arguments[0] in {"-l", "--list"}:
        width = max(map(len, known), default=0)
        print("\n".join(f"{name.ljust(width)}  {line}" for name, line in known.items()))
        return 0
    if arguments[0] not in known:
        close = difflib.get_close_matches(arguments[0], known) or list(known)
        print(
            f"There is no benchmark {arguments[0]!r}. Expected a name from --list. "
            f"Did you mean {' or '.join(close)}?",
            file=sys.stderr,
        )
        return 2
    importlib.import_module(f"benchmarks.{arguments[0]}").main(list(arguments[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
