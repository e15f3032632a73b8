"""The truth: which rows, in which parts, and who may write them."""
