"""What lies over the panes for a moment: help, questions, cards."""
