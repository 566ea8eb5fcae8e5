"""Makes the cleaner that the options ask for, and keeps queries off checkpoints it has passed.

Not here: what is wrong with the options (`options/validation.py`), cleaning
(`enumerator/files`).
"""

from __future__ import annotations

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.cleanup_marks import CleanupMarks
from ...checkpoint_meta.storage.input_paths import loaded_paths
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.files.cleaning.file_cleaner import CleaningPolicy, FileCleaner
from ...errors import OptionError
from ..options.model import SluiceOptions
from ..options.validation import archive_of


def make_cleaner(options: SluiceOptions) -> FileCleaner | None:
    """What deletes or archives files; None where they stay."""
    if options.clean_source == "off":
        return None
    paths = loaded_paths(options.path)
    policy = CleaningPolicy(options.clean_source, paths, archive_of(options))
    return FileCleaner(policy, options.storage_options)


def check_not_cleaned(store: StateStore, ref: CheckpointRef, options: SluiceOptions) -> None:
    """Check that the files which a query that starts from `ref` would read are still there.

    Raises:
        OptionError: checkpoints after it have been cleaned up.
    """
    newest = CleanupMarks(store, 0).newest()
    if ref.checkpoint < newest and not options.ignore_missing_files:
        raise OptionError(
            "startingState: files that this checkpoint had not assigned have been cleaned up",
            store.location,
            f"checkpoint {ref.checkpoint}",
            f"checkpoint {newest} or a later one, up to which cleanSource has deleted or moved "
            "what was read",
            (
                "Name a later checkpoint; or put the files back and start again with "
                "ignoreMissingFiles=true, which reads the files that exist."
            ),
        )
