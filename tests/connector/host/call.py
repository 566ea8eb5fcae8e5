"""One call of `sluice run` again and again, and the commands that its messages name."""

import re
import shlex

from deltalake import DeltaTable

from pyspark_sluice.connector.cli.app import main


class Call:
    """The same call again and again, with options that are added to it."""

    def __init__(self, query, *arguments, fmt="json", schema=""):
        self.query, self.arguments, self.schema = query, ["--format", fmt, *arguments], schema

    def run(self, *options, code=0, says=(), apart=False):
        """Run; the message has all of `says`, which are parts of the remedy that is tried next.

        Before a command that needs a stopped query, the run has to be `apart` from this process.
        """
        flags = [flag for option in options for flag in ("--option", option)]
        run = self.query.run if apart else self.query.run_here
        answer, _, message = run(*self.arguments, *flags, schema=self.schema)
        assert answer == code, message
        assert [part for part in says if part not in message] == []
        return message

    def put(self, name, text):
        path = self.query.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def rows(self):
        table = DeltaTable(str(self.query.table)).to_pyarrow_table()
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)

    def command(self, message, verb):
        """Run the command that a message names, as it is printed."""
        (line,) = set(re.findall(rf"`sluice ({verb} [^`]*)`", message))
        assert main(shlex.split(line)) == 0
