"""Trials of crashes, errors and damage. docs/explanation/reliability.md describes them."""
