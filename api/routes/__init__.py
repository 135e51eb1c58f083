"""The routes of the REST API, one noun per file. Each asks the store or the archive and answers with `api.answers`."""
