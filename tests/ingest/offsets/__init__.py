"""Records of `__consumer_offsets`: real ones, every layout, damaged bytes, and how far the topic has been read."""
