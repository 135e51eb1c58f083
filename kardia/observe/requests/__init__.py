"""What an answered request means: one function per kind of event, called in the order of their effect."""
