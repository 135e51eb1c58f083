"""When something becomes due, and who is waited for until then. Arithmetic over one group; remembers nothing."""
