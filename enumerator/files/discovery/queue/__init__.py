"""Files that a queue announces: SQS with events of S3, Storage Queues with events of Azure."""
