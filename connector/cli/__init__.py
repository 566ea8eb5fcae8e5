"""The command line `sluice`: looks at a state directory, and makes new ones of it.

A function that a command calls raises a `SluiceError` if it cannot do what it says: an OptionError
about what the user passed, a StateError about a state that is missing or damaged.
`errors_as_messages` prints it, and turns it into an exit code.
"""
