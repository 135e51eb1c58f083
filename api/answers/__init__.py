"""The present as answers: plain dicts, lists in their orders, what boards and Burrow's words show of it."""
