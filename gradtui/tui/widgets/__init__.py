"""Widgets that panes and the frame of the screen are made of."""
