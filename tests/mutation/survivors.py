"""Mutants that no test can tell from the original, each with the reason. Whatever else survives is a missing test."""

EQUIVALENT: dict[str, dict[str, str]] = {}
