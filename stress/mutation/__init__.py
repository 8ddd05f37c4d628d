"""Named mutations of the core, each of which some hazard or test must notice."""
