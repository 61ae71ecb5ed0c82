"""How good, how calibrated, how certain: measures of predictions, each with its interval."""
