"""Who may ask, and by which connection: tokens, certificates, bounds that every request passes first."""
