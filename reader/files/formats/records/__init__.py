"""The shared ground of formats of records: values from text, schemas, outcomes, the driver."""
