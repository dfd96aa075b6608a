"""What `simindex dedup` keeps, marks and ranks."""
