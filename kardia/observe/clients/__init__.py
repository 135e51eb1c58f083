"""What a client shows of its application by its requests: whether it polls, why it left."""
