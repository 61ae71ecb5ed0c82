"""scikit-learn's manners: validation, containers, names, transactions. No mathematics here."""
