-- Orders and the references to them count toward the quota of bytes (0004), because nothing deletes them. Their texts never change, so updates
-- count nothing. An online step counts the existing rows.
create trigger orders_bytes_added after insert on orders referencing new table as changed
  for each statement execute function count_bytes();
create trigger orders_bytes_deleted after delete on orders referencing old table as changed
  for each statement execute function count_bytes();
create trigger orders_bytes_truncated after truncate on orders execute function recount_after_truncate();
create trigger order_references_bytes_added after insert on order_references referencing new table as changed
  for each statement execute function count_bytes();
create trigger order_references_bytes_deleted after delete on order_references referencing old table as changed
  for each statement execute function count_bytes();
create trigger order_references_bytes_truncated after truncate on order_references execute function recount_after_truncate();
