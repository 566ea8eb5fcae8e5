"""The storage below state and data: places, buckets, their errors and retries.

Objects of S3, Google Cloud Storage and Azure come through one fast client. Every other file system,
and these too where `storageOptions` ask for it, is fsspec's.
"""
