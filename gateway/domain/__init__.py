"""The rules, pure: states, the one transition table, refusals, values. No I/O, no clock, no framework."""
