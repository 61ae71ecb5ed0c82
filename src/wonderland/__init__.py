"""Wonderland: differentiable machine learning whose every fit brings its evidence."""
