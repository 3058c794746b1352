"""The database: a narrow port (`database`), two drivers behind it, and the migrations."""
