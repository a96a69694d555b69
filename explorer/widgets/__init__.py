"""Small widgets that know no model and no state."""
