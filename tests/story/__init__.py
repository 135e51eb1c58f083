"""The story in sentences: recorded stories told truly, links and doubts in words, hostile names, both interfaces."""
