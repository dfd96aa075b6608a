"""What recipes do to real text: measured again by one command, `recipes.py`."""
