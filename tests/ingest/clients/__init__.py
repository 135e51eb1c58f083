"""The file of client settings, and the lines that the client library writes."""
