"""Linear models: least squares and ridge, from a table to coefficients with certified digits."""
