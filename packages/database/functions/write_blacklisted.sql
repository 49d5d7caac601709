-- Adds the blacklisted checks of a flush, only for organizations with an enabled endpoint that lists `license.blacklisted`. At most 100
-- licenses of an organization have a row, and further licenses are skipped. Validators that write at the same moment may exceed this
-- number.
create or replace function write_blacklisted(license_ids uuid[], codes text[], counts integer[], firsts float8[], lasts float8[]) returns void
  language plpgsql set search_path = public, pg_temp as $$
begin
  if not 'BLACKLISTED' = any (codes) then
    return;
  end if;
  insert into blacklisted_checks as b (license_id, organization_id, count, first_at, last_at)
  select license_id, organization_id, checks, first_at, last_at from (
    select n.*, k.license_id is not null as is_known, row_number() over (
      partition by n.organization_id, k.license_id is null order by n.license_id) as place
    from (
      select l.id as license_id, l.organization_id, sum(r.count) as checks,
        sane_time(to_timestamp(min(r.first) / 1000)) as first_at, sane_time(to_timestamp(max(r.last) / 1000)) as last_at
      from unnest(license_ids, codes, counts, firsts, lasts) as r (license_id, code, count, first, last)
        join licenses l on l.id = r.license_id
      where r.code = 'BLACKLISTED' and exists (select from webhook_endpoints e
        where e.organization_id = l.organization_id and e.enabled and 'license.blacklisted' = any (e.types))
      group by l.id
    ) n left join blacklisted_checks k on k.license_id = n.license_id
  ) m
  where is_known or place <= 100 - (select count(*) from blacklisted_checks o where o.organization_id = m.organization_id)
  order by license_id
  on conflict (license_id) do update set count = b.count + excluded.count, first_at = least(b.first_at, excluded.first_at),
    last_at = greatest(b.last_at, excluded.last_at);
end $$;
