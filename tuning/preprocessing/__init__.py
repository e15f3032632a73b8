"""How one customer's frame becomes arrays, folds and encodings."""
