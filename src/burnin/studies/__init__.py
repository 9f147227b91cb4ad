"""Reproductions of the papers' experiments: rows that resume, a table, a figure, a check."""
