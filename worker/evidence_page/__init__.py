"""The evidence of a task as a page in the browser, on this machine alone, for as long as a person lets it run."""
