"""The routes of the REST API, one noun per file. Each asks the store or the archive and answers with `api.answers`.

A new noun is a file here and a name in `api/app.py`; its answer is described in `api/shapes`."""
