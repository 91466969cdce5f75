"""The network, in one place: who is called, how long it may take, how much may come back."""
