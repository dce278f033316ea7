"""Order: comparisons in a total order, `sort` along an axis, and the greatest elements along an axis (`top_k`)."""
