"""What Kardia says against what was true."""
