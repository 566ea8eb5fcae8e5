"""What the formats of records share: values from text, schemas, outcomes, and their driver."""
