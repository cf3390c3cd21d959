"""What the worker can do on a shop's site: one seam, one adapter a site."""
