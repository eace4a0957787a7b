"""What operators run: checks of an installation and of what it holds."""
