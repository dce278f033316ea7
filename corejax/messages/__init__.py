"""Parts of messages for users: their lines of code, tracebacks, advice on what to install."""
