"""What routes share: typed parameters, the context of a request, validators of caches, news for followers."""
