"""A shop that means harm: the real sandbox shop, with its answers changed on the way to the worker."""
