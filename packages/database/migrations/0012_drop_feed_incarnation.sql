-- Nothing reads this table: `server_run` tells the runs of a server apart.

drop table feed_incarnation;
