"""A worker's tools, kept to one root folder: `bash`, `read`, `write`, `edit`, `glob`, `grep`."""
