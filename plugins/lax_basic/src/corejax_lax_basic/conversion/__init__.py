"""Elements in another representation.

convert_element_type and stop_gradient; bitcasts and reduced precision belong here.
"""
