"""What streams do while they wait."""
