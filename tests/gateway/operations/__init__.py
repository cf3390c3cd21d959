"""What the person in charge does and sees."""
