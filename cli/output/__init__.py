"""How answers look in a terminal: tables, stories, progress. Every text of a stranger is escaped."""
