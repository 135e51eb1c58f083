"""What routes share: how they are made, parameters, pages, the context of a request, ETags, news of a change."""
