"""Files that a queue tells of: events of S3, straight, through SNS or through EventBridge."""
