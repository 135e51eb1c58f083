"""What was so: histories, an instant of the past, the pulse of a group, incident reports; read from the files."""
