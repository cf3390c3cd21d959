"""How both commands print and end, on a real terminal, in a pipe, and where nothing can be written."""
