"""What follows when a timer of the coordinator has fired and nobody was told: sessions and phases that ran out."""
