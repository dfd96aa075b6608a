"""The commands of the shell, one module each; `simindex.cli` lists them."""
