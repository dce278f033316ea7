"""`corejax new-plugin`: a complete distribution to start from.

`names` derives and checks the names of the new distribution, `writing` fills in the templates, and `first_manifest`
writes the manifest by loading the new plugin in another process.
"""
