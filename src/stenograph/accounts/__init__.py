"""WHO IS CALLING: organizations, the people and agents in them, and their credentials."""
