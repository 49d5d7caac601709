-- Notifies the validators of logged changes. Postgres commits notifying transactions one after the other, so a transaction may set
-- `keyward.notification` to `deferred` for itself: it then does not notify, the setting becomes `due`, and the program that began the
-- transaction notifies after the commit. Changes by hand, and those of earlier versions, have no such setting and notify here.
create or replace function notify_validators() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if coalesce(current_setting('keyward.notification', true), '') = '' then
    perform pg_notify('keyward_changes', '');
  else
    perform set_config('keyward.notification', 'due', true);
  end if;
end $$;
