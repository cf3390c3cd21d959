"""Where tasks live: the port, the SQL that every engine shares, typed rows, one folder an engine."""
