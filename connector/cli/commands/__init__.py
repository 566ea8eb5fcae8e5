"""What single commands do; those that `app.py` does not have define their arguments, too."""
