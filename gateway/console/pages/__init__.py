"""The console's pages, a module a subject: what is asked for, read, and shown."""
