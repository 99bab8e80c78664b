"""One file a pane. Panes are given a view, and say what the person did; they know nothing of each other, the store or the socket."""
