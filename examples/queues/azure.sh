#!/usr/bin/env bash
# Creates a Storage Queue that receives the events of new objects in a container, a queue for messages that are not
# such events, and the roles of the query's driver. Executors need only the role on the container.
#
#   SUBSCRIPTION=... GROUP=... ACCOUNT=account CONTAINER=my-lake PREFIX=landing QUEUE=orders PRINCIPAL=... bash azure.sh
#
# PRINCIPAL is the identity of the driver, GROUP the resource group of the storage account. A name of a queue has
# 3 to 63 lower-case letters, digits and single hyphens.
set -eu
prefix=${PREFIX:+${PREFIX%/}/}
endpoint=queue.${SUFFIX:-core.windows.net}
: "${SUBSCRIPTION:?}" "${GROUP:?}" "${ACCOUNT:?}" "${CONTAINER:?}" "${QUEUE:?}" "${PRINCIPAL:?}"
storage=/subscriptions/$SUBSCRIPTION/resourceGroups/$GROUP/providers/Microsoft.Storage/storageAccounts/$ACCOUNT
queues=$storage/queueServices/default/queues

for queue in "$QUEUE" "$QUEUE-dead-letters"; do
  az storage queue create --account-name "$ACCOUNT" --auth-mode login --name "$queue"
done

# A message waits 14 days for a query that is down. The filter leaves out files that a writer has only begun.
az eventgrid event-subscription create --name "$QUEUE" --source-resource-id "$storage" \
  --endpoint-type storagequeue --endpoint "$queues/$QUEUE" --storage-queue-msg-ttl 1209600 \
  --included-event-types Microsoft.Storage.BlobCreated Microsoft.Storage.BlobRenamed \
  --subject-begins-with "/blobServices/default/containers/$CONTAINER/blobs/$prefix" \
  --advanced-filter data.api StringNotIn CreateFile SftpCreate

grant() {
  az role assignment create --assignee "$PRINCIPAL" --role "$1" --scope "$2"
}
grant "Storage Blob Data Reader" "$storage/blobServices/default/containers/$CONTAINER"
# To hide a message for longer is a write, which Message Processor may not.
grant "Storage Queue Data Contributor" "$queues/$QUEUE"
grant "Storage Queue Data Message Sender" "$queues/$QUEUE-dead-letters"

echo "discoveryMode=notifications"
echo "queueUrl=https://$ACCOUNT.$endpoint/$QUEUE"
echo "deadLetterQueueUrl=https://$ACCOUNT.$endpoint/$QUEUE-dead-letters"
