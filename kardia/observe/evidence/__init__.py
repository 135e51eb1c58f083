"""What beside answered requests shows something: records, server.log, restarts, refusals, a log that is off."""
