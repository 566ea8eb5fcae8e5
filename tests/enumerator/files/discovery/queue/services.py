"""A store and the queue that its events go to, on loopback: SQS, Storage Queues, Pub/Sub.

The store does not write its events here, since no emulator has Event Grid: the tests do.
"""

import base64
import json
import uuid
from urllib.parse import quote, quote_plus


class Service:
    """What the tests do behind the back of the code under test; each queue has its own way."""

    longest_body = 100_000

    def __init__(self, store, queues):
        self.store, self.queues = store, queues

    def faulty(self, fault):
        """What both answer from now on; None for nothing but the truth."""
        self.store.fault = self.queues.fault = fault

    def events(self, bucket, *keys):
        """The messages that tell of these objects."""
        return [self.event(bucket, *keys)]

    def version(self, bucket, key):
        """ETag and time of an object, as the store's own client has them."""
        head = self.store.client().head_object(Bucket=bucket, Key=key)
        return head["ETag"], head["LastModified"]

    def kind_of(self, environ):
        """What a request is; the queues' ones by their action."""
        server = self.queues if self.is_queue(environ) else self.store
        return server.kind_of(environ)


def record(bucket, key, name="ObjectCreated:Put"):
    entity = {"bucket": {"name": bucket}, "object": {"key": quote_plus(key), "size": 1}}
    return {"eventSource": "aws:s3", "eventName": name, "s3": entity}


def event(*records):
    return json.dumps({"Records": records})


def in_sns(body):
    return json.dumps({"Type": "Notification", "MessageId": "1", "Message": body})


def in_event_bridge(bucket, key, kind="Object Created"):
    detail = {"bucket": {"name": bucket}, "object": {"key": key}}
    return json.dumps({"source": "aws.s3", "detail-type": kind, "detail": detail})


TEST_EVENT = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"})


class Sqs(Service):
    deletion = "DeleteMessageBatch"
    extension = "ChangeMessageVisibilityBatch"
    no_object = TEST_EVENT

    def is_queue(self, environ):
        return "sqs" in environ.get("HTTP_AUTHORIZATION", "")

    @property
    def _client(self):
        return self.store.client("sqs")

    def make_queue(self, visibility=30):
        attributes = {"VisibilityTimeout": str(visibility)}
        made = self._client.create_queue(
            QueueName=f"q-{uuid.uuid4().hex[:12]}", Attributes=attributes
        )
        return made["QueueUrl"]

    def delete_queue(self, queue):
        self._client.delete_queue(QueueUrl=queue)

    def send(self, queue, body):
        self._client.send_message(QueueUrl=queue, MessageBody=body)

    def left(self, queue):
        """How many messages anybody may receive, and how many are hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._client.get_queue_attributes(QueueUrl=queue, AttributeNames=names)
        return tuple(int(found["Attributes"][name]) for name in names)

    def bodies(self, queue):
        found = self._client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
        return [message["Body"] for message in found["Messages"]]

    def event(self, bucket, *keys, created=True):
        name = "ObjectCreated:Put" if created else "ObjectRemoved:Delete"
        return event(*(record(bucket, key, name) for key in keys))

    def wrapped(self, bucket, key):
        """An event in another of the forms that the service has."""
        return in_sns(in_event_bridge(bucket, key))


def blob_event(container, key, kind="BlobCreated", api="PutBlob"):
    """In the schema of Event Grid, as Microsoft documents it."""
    return {
        "topic": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a",
        "subject": f"/blobServices/default/containers/{container}/blobs/{key}",
        "eventType": f"Microsoft.Storage.{kind}",
        "eventTime": "2026-06-26T18:41:00.9584103Z",
        "id": "831e1650-001e-001b-66ab-eeb76e069631",
        "data": {
            "api": api,
            "eTag": "0x8D4BCC2E4835CD0",
            "contentLength": 524288,
            "url": f"https://a.blob.core.windows.net/{container}/{quote(key, errors='replace')}",
        },
        "dataVersion": "",
        "metadataVersion": "1",
    }


def as_cloud_event(event):
    """The same in version 1.0 of CloudEvents."""
    return {
        "specversion": "1.0",
        "source": event["topic"],
        "type": event["eventType"],
        "time": event["eventTime"],
        **{name: event[name] for name in ("id", "subject", "data")},
    }


def in_base64(event):
    """As Event Grid puts it into a queue."""
    return base64.b64encode(json.dumps(event).encode()).decode()


class StorageQueues(Service):
    deletion = "DeleteMessage"
    extension = "UpdateMessage"
    longest_body = 40_000
    no_object = in_base64(blob_event("c", "in/a", "BlobTierChanged", "SetBlobTier"))

    def version(self, bucket, key):
        found = self.store._service.get_blob_client(bucket, key).get_blob_properties()
        return found.etag, found.last_modified

    def is_queue(self, environ):
        return environ["SERVER_PORT"] == str(self.queues.port)

    def make_queue(self, visibility=30):
        name = f"q-{uuid.uuid4().hex[:12]}"
        self._client(name).create_queue()
        return f"{self.queues.url}/devstoreaccount1/{name}"

    def _client(self, queue):
        return self.queues.client(queue.rpartition("/")[2])

    def delete_queue(self, queue):
        self._client(queue).delete_queue()

    def send(self, queue, body):
        self._client(queue).send_message(body)

    def left(self, queue):
        client = self._client(queue)
        shown = len(client.peek_messages(max_messages=32))
        return shown, client.get_queue_properties().approximate_message_count - shown

    def bodies(self, queue):
        return [message.content for message in self._client(queue).receive_messages()]

    def event(self, bucket, *keys, created=True):
        kind = "BlobCreated" if created else "BlobDeleted"
        events = [blob_event(bucket, key, kind) for key in keys]
        return in_base64(events[0] if len(events) == 1 else events)

    def wrapped(self, bucket, key):
        return json.dumps(as_cloud_event(blob_event(bucket, key)))


def object_event(bucket, key, kind="OBJECT_FINALIZE"):
    """The attributes that Cloud Storage gives a message, as Google documents them."""
    return {
        "notificationConfig": f"projects/_/buckets/{bucket}/notificationConfigs/1",
        "eventType": kind,
        "payloadFormat": "JSON_API_V1",
        "bucketId": bucket,
        "objectId": key,
        "objectGeneration": "1782499260958410",
        "eventTime": "2026-06-26T18:41:00.958410Z",
    }


def in_pubsub(attributes, data=b""):
    """A message as a subscription has it in its body."""
    in_order = dict(sorted(attributes.items()))
    return json.dumps({"attributes": in_order, "data": base64.b64encode(data).decode()})


class PubSub(Service):
    deletion = "Acknowledge"
    extension = "ModifyAckDeadline"
    no_object = in_pubsub(object_event("b", "in/a", "OBJECT_DELETE"))

    def is_queue(self, environ):
        return "CALL" in environ

    def kind_of(self, environ):
        kind = super().kind_of(environ)
        return "SendMessage" if kind == "Publish" else kind

    def make_queue(self, visibility=30):
        name = f"q-{uuid.uuid4().hex[:12]}"
        self.queues.create(name, visibility)
        return f"{self.queues.url}/v1/projects/p/subscriptions/{name}"

    def delete_queue(self, queue):
        self.queues.remove(queue.rpartition("/")[2])

    def send(self, queue, body):
        attributes, data = {}, body.encode()
        if body.startswith('{"attributes"'):
            event = json.loads(body)
            attributes, data = event["attributes"], base64.b64decode(event["data"])
        message = {"attributes": attributes, "data": data}
        self.queues.publish(queue.rpartition("/")[2], message)

    def left(self, queue):
        return self.queues.left(queue.rpartition("/")[2])

    def bodies(self, queue):
        return [
            in_pubsub(dict(message.attributes), message.data)
            if message.attributes
            else message.data.decode()
            for message in self.queues.messages(queue.rpartition("/")[2])
        ]

    def events(self, bucket, *keys):
        return [self.event(bucket, key) for key in keys]

    def event(self, bucket, key, created=True):
        return in_pubsub(
            object_event(bucket, key, "OBJECT_" + ("FINALIZE" if created else "DELETE"))
        )

    def wrapped(self, bucket, key):
        return in_pubsub(object_event(bucket, key), b'{"kind": "storage#object"}')
