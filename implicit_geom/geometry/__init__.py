"""Distance, closest points of many pairs, support functions, broad phase."""
