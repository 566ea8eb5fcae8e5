"""Objects of S3, Google Cloud Storage and Azure through one fast client, for data and state.

Every other file system, and these too where `storageOptions` ask for it, is fsspec's.
"""
