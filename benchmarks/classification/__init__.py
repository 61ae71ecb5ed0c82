"""The pieces of `python -m benchmarks classify`: one file for each kind of model."""
