-- The machines of an organization count toward a quota (docs/api.md#m13). The function `log_machines` counts changes, and an online step the
-- existing machines.
create trigger machines_count_truncated after truncate on machines execute function recount_after_truncate();
