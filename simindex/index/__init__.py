"""`Index`, the class that users work with: reading and writing together."""
