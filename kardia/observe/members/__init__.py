"""Members: who they are, how often they are heard, whether they poll, how a life ends, and who broke it."""
