"""What recorded curves say about search algorithms, and how sure that is."""
