"""WHO HAS HANDS: workers, the tickets they enroll with, where sessions work, calls given out."""
