"""What to do, as data: plans, their cost and the constants of the machine."""
