"""Where a bridge stores what waits for people: one contract (base.py), and a store for each size of deployment."""

from ..errors import ConfigurationError
from .base import STORE_CONTRACT_VERSION, Store
from .memory import MemoryStore


def open_store(store: Store | str) -> Store:
    """The store that the application has named: "memory", the URL of a database, or a `Store` of its own."""
    if store == "memory":
        return MemoryStore()
    if isinstance(store, str):
        from .sql import SqlStore  # only when it is needed: its packages are an extra

        return SqlStore(store)
    version = getattr(store, "contract_version", None)
    if isinstance(version, int) and not isinstance(store, type) and version != STORE_CONTRACT_VERSION:
        raise ConfigurationError(
            f"The contract_version of {type(store).__name__} is {version}, and this release needs a store with "
            f"version {STORE_CONTRACT_VERSION}."
        )
    methods = [name for name in vars(Store) if not name.startswith("_")]
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in methods):
        raise ConfigurationError(f"A store is 'memory', a database's URL or a Store, not {type(store).__name__}.")
    if version != STORE_CONTRACT_VERSION:
        raise ConfigurationError(
            f"The contract_version of {type(store).__name__} is {version}, and this release needs a store with "
            f"version {STORE_CONTRACT_VERSION}."
        )
    return store
