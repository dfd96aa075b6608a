"""`Index`: what a user holds, composed of reading and writing."""
