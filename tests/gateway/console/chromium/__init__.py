"""The console in real Chromium: what a person clicks, types and reads."""
