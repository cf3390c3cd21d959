"""One contract, three transports: the same call gives the same outcome over gRPC, Connect and REST."""
