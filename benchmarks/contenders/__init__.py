"""What `benchmarks.loading`, `.xplane` and `.explorer` start as processes of their own: one program a contender."""
