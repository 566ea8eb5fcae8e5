#!/usr/bin/env bash
# Creates an SQS queue that receives the events of new objects in a bucket, a queue for messages that are not such
# events, and the policy of the role of the query's driver and executors.
#
#   BUCKET=my-lake PREFIX=landing STATE=my-lake/checkpoints/orders REGION=eu-central-1 ACCOUNT=123456789012 \
#     QUEUE=orders bash aws.sh
set -eu
: "${BUCKET:?}" "${STATE:?}" "${REGION:?}" "${ACCOUNT:?}" "${QUEUE:?}"
prefix=${PREFIX:+${PREFIX%/}/}
arn=arn:aws:sqs:$REGION:$ACCOUNT:$QUEUE
url=https://sqs.$REGION.amazonaws.com/$ACCOUNT/$QUEUE

# put-bucket-notification-configuration replaces what a bucket has.
if [ -n "$(aws s3api get-bucket-notification-configuration --region "$REGION" --bucket "$BUCKET")" ]; then
  echo "$BUCKET sends its events elsewhere already: add the queue $arn there" >&2
  exit 1
fi

# A message waits 14 days for a query that is down: the most that SQS allows.
aws sqs create-queue --region "$REGION" --queue-name "$QUEUE-dead-letters" \
  --attributes '{"MessageRetentionPeriod": "1209600"}'

# The bucket, and no one else, may put events into the queue. The policy is a text within the attributes.
policy='{\"Version\": \"2012-10-17\", \"Statement\": [{\"Sid\": \"BucketEvents\", \"Effect\": \"Allow\",
  \"Principal\": {\"Service\": \"s3.amazonaws.com\"}, \"Action\": \"sqs:SendMessage\",
  \"Resource\": \"'$arn'\", \"Condition\": {\"ArnEquals\": {\"aws:SourceArn\": \"arn:aws:s3:::'$BUCKET'\"},
  \"StringEquals\": {\"aws:SourceAccount\": \"'$ACCOUNT'\"}}}]}'
aws sqs create-queue --region "$REGION" --queue-name "$QUEUE" --attributes \
  '{"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "120", "Policy": "'"$(tr -d '\n' <<<"$policy")"'"}'

aws s3api put-bucket-notification-configuration --region "$REGION" --bucket "$BUCKET" --notification-configuration \
  '{"QueueConfigurations": [{"Id": "sluice", "QueueArn": "'"$arn"'", "Events": ["s3:ObjectCreated:*"],
    "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "'"$prefix"'"}]}}}]}'

aws iam create-policy --policy-name "$QUEUE-query" --policy-document "$(
  sed -e "s|DATA-BUCKET/events/|$BUCKET/$prefix|; s|DATA-BUCKET|$BUCKET|; s|STATE-BUCKET/checkpoints/events|$STATE|" \
    -e "s|STATE-BUCKET|${STATE%%/*}|; s|REGION:ACCOUNT:sluice|$REGION:$ACCOUNT:$QUEUE|" \
    "$(dirname "$0")/../permissions/aws-policy.json"
)"

echo "discoveryMode=notifications"
echo "queueUrl=$url"
echo "deadLetterQueueUrl=$url-dead-letters"
