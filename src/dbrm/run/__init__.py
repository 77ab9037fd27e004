"""The one pipeline: inputs -> problem -> chains -> posterior, and the folder a run is kept in."""
