"""`cached_property` that a fork cannot leave locked.

Python 3.11's holds a lock, one for all objects of a class, while it computes a value; a process that is
forked at that moment by another thread inherits the lock closed, and waits for ever. This one has no lock,
and no process forks while it computes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from implicit_geom.process.threads import building

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A value computed on first use and kept in the object."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                with building():
                    if self.attrname not in kept:
                        kept[self.attrname] = self.func(instance)
            return kept[self.attrname]


__all__ = ["cached_property"]
