-- The counts of requests last ten seconds. An unlogged table needs no commit record, so its statements wait neither for the disk nor
-- for synchronous standbys. The table is empty after a crash or a failover.
alter table rate_limits set unlogged;
