"""Modules that all of the kernel uses: tables and slots with provenance, temporary changes, texts for messages."""
