"""The order loop and the steps of an order, from the lease to the end."""
