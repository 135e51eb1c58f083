"""Bodies of answers: groups, members, lists in their orders, rows of boards and charts, differences, Burrow's words."""
