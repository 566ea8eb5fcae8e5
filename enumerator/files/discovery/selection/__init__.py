"""Which of the files that are there are taken: by name, place, size, time and marker."""
