"""Between the user and the code: errors, checks of arguments, text files, files written whole, progress."""
