"""What every room uses: tables and seams that know who filled them, blocks that are left cleanly, words."""
