"""What every Kafka client of Kardia is given: its settings from the user's file, and how its log lines are written.

`settings` reads the file and refuses names that are not the file's to decide (what security is: `ingest.security`);
`log` gives the lines of the client library a time that people read; `bounded_log` bounds repeats in any log.
"""
