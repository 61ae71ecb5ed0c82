"""Language: from texts to tables, and back."""
