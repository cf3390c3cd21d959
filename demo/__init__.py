"""The main job with the real parts, each its own process: gateway, sandbox shop, worker and a watching upstream."""
