"""The cache of GPU health and topology in Redis or Valkey: keys, documents, writer, reader."""
