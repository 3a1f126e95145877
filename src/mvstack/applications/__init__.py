"""How far each package of a release came, by each builder, and the page that shows it."""
