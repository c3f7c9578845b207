package postgres

// EnsurePartitionsAt is EnsurePartitions of a process whose clock tells what it is given.
var EnsurePartitionsAt = ensurePartitions
