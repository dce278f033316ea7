"""Program to program: calls, and transformed jaxprs."""
