"""The ledger: a pure fold over events that knows, for every parameter, what its gradient is made of. No I/O, no clock, no torch."""
