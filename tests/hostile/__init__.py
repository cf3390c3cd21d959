"""What the outside world may do to gateway and worker, each kind as a table that is easy to add to."""
