"""The documented JSON contract (specification, section 3): a thin facade over the use cases that gRPC calls too."""
