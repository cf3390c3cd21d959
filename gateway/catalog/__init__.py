"""The order catalogue: filing its queries, reading their results, comparing them with the tasks."""
