"""Timings beside their peers in one run: `python -m benchmarks NAME`."""
