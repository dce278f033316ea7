"""Program to program: calls, transformed jaxprs, rematerialisation."""
