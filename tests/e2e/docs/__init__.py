"""What the documents tell a reader to type is typed here, and what they say comes out must come out."""
