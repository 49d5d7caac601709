-- Returns a UUIDv7, for rows that the database creates. The 12 bits after the version are the fraction of the millisecond (RFC 9562, 6.2,
-- method 3), so ids that two processes create within one millisecond sort in the order of creation.
create or replace function new_id() returns uuid language sql volatile as $$
  select (lpad(to_hex(us / 1000), 12, '0') || to_hex(x'7000'::bigint + us % 1000 * 4096 / 1000) || right(gen_random_uuid()::text, 17))::uuid
  from (select floor(extract(epoch from clock_timestamp()) * 1000000)::bigint as us) now $$;
