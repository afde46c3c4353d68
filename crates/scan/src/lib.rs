//! Files to resident tables.
