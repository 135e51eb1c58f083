"""What a release has left on disk, opened by the next one: nothing is begun anew because Kardia was upgraded."""
