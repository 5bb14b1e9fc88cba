"""Where a bridge keeps what waits for people: one contract (base.py), and a store for each size of deployment."""

from ..errors import ConfigurationError
from .base import Store
from .memory import MemoryStore


def open_store(store: Store | str) -> Store:
    """A store as one names it: "memory", a database's URL, or a store of one's own."""
    if store == "memory":
        return MemoryStore()
    if isinstance(store, str):
        from .sql import SqlStore  # not before it is asked for: its packages are an extra

        return SqlStore(store)
    methods = [name for name in vars(Store) if not name.startswith("_")]
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in methods):
        raise ConfigurationError(f"A store is 'memory', a database's URL or a Store, not {type(store).__name__}.")
    return store
