"""The equations of a step as CasADi graphs: momentum, closest points (KKT rows), friction, one NCP."""
