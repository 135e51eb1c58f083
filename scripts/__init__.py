"""Programs for working on Kardia: set-up of a working copy, and what writes generated pages, examples and pictures."""
