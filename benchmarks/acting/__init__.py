"""The pieces of `python -m benchmarks trust`: one file for each kind of statement."""
