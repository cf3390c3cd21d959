"""The local worker: takes one order at a time, executes it on the site, keeps the evidence, reports."""
