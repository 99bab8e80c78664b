"""What keys do, by subject; mixed into the app so that it stays a router."""
