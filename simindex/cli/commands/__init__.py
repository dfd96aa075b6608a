"""The commands of the shell, one module each."""
