"""Arguments of several commands: models, options, files."""
