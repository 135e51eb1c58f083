"""What a client's library shows of its application: whether it polls (`application`), why it left (`leaves`)."""
