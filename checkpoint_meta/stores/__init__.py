"""Where state is kept: the contract of a store, and each kind of one."""
