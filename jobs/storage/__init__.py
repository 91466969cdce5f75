"""Tables and guarded statements. Services open the transaction; nothing here commits."""
