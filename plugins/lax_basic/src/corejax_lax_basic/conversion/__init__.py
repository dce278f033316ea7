"""The same values in another representation, or for another purpose.

convert_element_type and stop_gradient; bitcasts and reduced precision belong here.
"""
