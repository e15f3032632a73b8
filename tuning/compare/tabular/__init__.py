"""Comparisons on recorded evaluations of a complete grid."""
