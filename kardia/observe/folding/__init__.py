"""Many quiet requests at once: the same rows as one by one, without a look at each."""
