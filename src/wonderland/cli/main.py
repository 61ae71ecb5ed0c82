"""The command line: `wonderland demo | fit | predict | show`.

What goes wrong is told in one sentence of three parts on the error stream, with exit code 2.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from wonderland import __version__
from wonderland.core.errors import InputError

__all__ = ["main"]

EXAMPLES = """examples:
  wonderland demo
  wonderland fit houses.parquet --target price --out price.wl
  wonderland fit houses.csv --target price --model ridge --alpha loo --test 0.25
  wonderland predict price.wl new.csv --level 0.9
  wonderland show price.wl --json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 2 when the input cannot be used."""
    parser = _parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:  # argparse has said why
        return int(end.code or 0)
    if options.command is None:
        parser.print_help()
        return 2
    with warnings.catch_warnings():
        warnings.showwarning = _tell  # type: ignore[assignment]
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _tell(
            f"{error.filename}: {error.strerror}. Expected a path it can use. Check its spelling."
        )
        return 2
    except (InputError, ImportError) as error:
        _tell(error)
        return 2
    except KeyboardInterrupt:
        _tell("interrupted")
        return 130
    return 0


def _tell(message: Any, *_: Any) -> None:
    print(f"wonderland: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wonderland",
        description="Differentiable machine learning: every fit brings its evidence.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wonderland {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    demo = commands.add_parser("demo", help="fit models on data that ships with scikit-learn")
    demo.set_defaults(run=_demo)
    _add_fit(commands.add_parser("fit", help="learn a target column of a table from the others"))
    _add_predict(commands.add_parser("predict", help="predictions of a saved model, as CSV"))
    _add_show(commands.add_parser("show", help="coefficients and evidence of a saved model"))
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_fit)
    parser.add_argument(
        "file", metavar="FILE", help=".parquet, .csv, .feather or .arrow, or a folder of Parquet"
    )
    parser.add_argument("--target", required=True, metavar="NAME", help="column to predict")
    parser.add_argument(
        "--features", metavar="A,B,…", help="columns to learn from (default: all others)"
    )
    parser.add_argument("--weight", metavar="NAME", help="column of sample weights")
    parser.add_argument("--model", choices=("linear", "ridge"), default="linear")
    parser.add_argument(
        "--alpha", default=None, help="penalty of ridge: a number, loo or gradient (default: loo)"
    )
    parser.add_argument("--degree", type=int, default=1, help="of a polynomial basis (default: 1)")
    parser.add_argument("--no-intercept", action="store_true", help="a line through the origin")
    parser.add_argument(
        "--test", type=float, default=0.0, metavar="SHARE", help="share of rows kept for testing"
    )
    parser.add_argument("--seed", type=int, default=0, help="which rows those are (default: 0)")
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (default: 0.95)")
    parser.add_argument(
        "--stream", action="store_true", help="read in one pass, for more rows than memory holds"
    )
    parser.add_argument("--out", metavar="MODEL", help="save the fitted model here")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_predict)
    parser.add_argument("model", metavar="MODEL", help="written by wonderland fit or wl.save")
    parser.add_argument("file", metavar="FILE", help="a table with the columns of the fit")
    parser.add_argument("--level", type=float, help="add prediction intervals of this level")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_show)
    parser.add_argument("model", metavar="MODEL", help="written by wonderland fit or wl.save")
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (default: 0.95)")
    parser.add_argument("--json", action="store_true", help="print JSON")


# Each command imports what it needs, so that --help and --version answer at once.


def _demo(options: argparse.Namespace) -> None:
    from wonderland.cli.demo import run

    run()


def _fit(options: argparse.Namespace) -> None:
    from wonderland.cli.work import fit_file

    fit_file(options)


def _predict(options: argparse.Namespace) -> None:
    from wonderland.cli.work import predict_file

    predict_file(options.model, options.file, options.level)


def _show(options: argparse.Namespace) -> None:
    from wonderland.cli.work import show
    from wonderland.core.store import load

    show(load(options.model), options.level, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
