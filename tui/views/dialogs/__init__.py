"""What lies over a screen: texts, help, pickers, the command palette."""
