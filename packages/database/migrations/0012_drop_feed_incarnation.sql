-- Nothing reads this table, because `server_run` identifies the runs of a server.

drop table feed_incarnation;
