-- The named token that a lease, or an attempt of a query, was given to; NULL where the token has no name.
ALTER TABLE leases ADD COLUMN bound_to TEXT;
ALTER TABLE query_attempts ADD COLUMN bound_to TEXT;
