"""What proves that an index survives crashes, errors and damage; see docs/reliability.md."""
