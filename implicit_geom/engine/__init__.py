"""The step in native code: geometry, contact problems, flights and impacts, island by island."""
