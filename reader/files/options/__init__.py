"""The options of reading: what the format is, how bytes turn into values, what may be skipped.

Names, meanings and defaults are those of Spark's own readers, but for `mode`. Not here: options
of discovery, of batches and of state; the connector's model inherits from this one.
"""

from .reading import ReaderOptions
from .values import Compression, FileFormatName, ParseMode, RebaseMode, Secret

__all__ = ["Compression", "FileFormatName", "ParseMode", "ReaderOptions", "RebaseMode", "Secret"]
