"""Text: lines as rows."""
