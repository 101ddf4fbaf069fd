"""What several commands take: models, options, files."""
