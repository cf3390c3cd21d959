"""The contract over HTTP/1.1: Connect and gRPC-Web, for clients without gRPC, such as browsers and curl."""
