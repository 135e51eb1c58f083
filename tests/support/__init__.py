"""What several test rooms share: recorded stories and a way to write histories in the words of the protocol."""
