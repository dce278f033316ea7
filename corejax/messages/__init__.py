"""What users read: their lines, tracebacks, advice on what to install."""
