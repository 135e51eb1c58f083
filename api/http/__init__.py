"""What routes share: how they are made, parameters, the context of a request, validators of caches, news."""
