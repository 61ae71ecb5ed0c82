"""The command `wonderland`: a demo, and fit, predict, show for files."""
