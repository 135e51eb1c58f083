"""From what a broker writes to events: dialects, tailing, the offsets topic, and the topic `kardia.events`.

Nothing here judges a group or a member; an event says what was in the log and where it stood.
"""
