"""Order: comparisons in a total order, `sort` along an axis, the greatest elements of one (`top_k`)."""
