#!/usr/bin/env bash
# Creates a subscription of Pub/Sub that receives the events of new objects in a bucket, a topic for messages that are
# not such events, and the roles of the query's driver. Executors need only the role on the bucket.
#
#   PROJECT=my-project BUCKET=my-lake PREFIX=landing QUEUE=orders \
#     PRINCIPAL=serviceAccount:name@my-project.iam.gserviceaccount.com bash google.sh
set -eu
prefix=${PREFIX:+${PREFIX%/}/}
: "${PROJECT:?}" "${BUCKET:?}" "${QUEUE:?}" "${PRINCIPAL:?}"

# Each topic has a subscription that keeps its messages for 14 days.
gcloud pubsub topics create "$QUEUE" "$QUEUE-dead-letters" --project="$PROJECT"
gcloud pubsub subscriptions create "$QUEUE" --topic="$QUEUE" --project="$PROJECT" \
  --ack-deadline=120 --message-retention-duration=14d --expiration-period=never
gcloud pubsub subscriptions create "$QUEUE-dead-letters" --topic="$QUEUE-dead-letters" --project="$PROJECT" \
  --message-retention-duration=14d --expiration-period=never

gcloud storage buckets notifications create "gs://$BUCKET" --topic="projects/$PROJECT/topics/$QUEUE" \
  --event-types=OBJECT_FINALIZE --object-prefix="$prefix"

gcloud storage buckets add-iam-policy-binding "gs://$BUCKET" --member="$PRINCIPAL" --role=roles/storage.objectViewer
gcloud pubsub subscriptions add-iam-policy-binding "$QUEUE" --project="$PROJECT" --member="$PRINCIPAL" \
  --role=roles/pubsub.subscriber
gcloud pubsub topics add-iam-policy-binding "$QUEUE-dead-letters" --project="$PROJECT" --member="$PRINCIPAL" \
  --role=roles/pubsub.publisher

echo "discoveryMode=notifications"
echo "queueUrl=https://pubsub.googleapis.com/v1/projects/$PROJECT/subscriptions/$QUEUE"
echo "deadLetterQueueUrl=https://pubsub.googleapis.com/v1/projects/$PROJECT/topics/$QUEUE-dead-letters"
