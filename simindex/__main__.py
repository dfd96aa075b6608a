"""`python -m simindex`."""

from simindex.cli import main

main()
