"""The verdicts on who serves a call, the ledger in which they stand, and patience with what was in vain."""
