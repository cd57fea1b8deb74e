"""What is behind figures as pictures: of text for terminals, and as SVG for pages."""
