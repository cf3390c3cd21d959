"""The gRPC transport on grpc.aio."""
