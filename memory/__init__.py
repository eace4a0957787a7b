"""Agent memory you can actually erase: the database enforces it, whoever issues the DELETE."""
