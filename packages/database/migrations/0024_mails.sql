-- Mails to customers (docs/api.md#e1). A row contains no text: the worker renders the mail when it sends it.
create table mails (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  template text not null check (template in ('key', 'ending')),
  -- Null when the customer has been deleted. The row remains, because it counts toward the daily limit.
  customer_id uuid references customers on delete set null,
  recipient text,
  license_ids uuid[] not null,
  ends_at timestamptz,
  status text not null default 'PENDING' check (status in ('PENDING', 'SUCCEEDED', 'FAILED')),
  attempts integer not null default 0,
  attempted_at timestamptz,
  next_attempt_at timestamptz default now(),
  worker uuid,
  error text
);
create index mails_due on mails (organization_id, next_attempt_at) where status = 'PENDING' and worker is null;
create index mails_claimed on mails (worker) where worker is not null;
create index mails_listing on mails (organization_id, id);
create index mails_customer on mails (customer_id, id);
create index mails_attempted on mails (organization_id, attempted_at) where attempted_at is not null;

alter table organizations
  add column mail_sender_name text,
  add column mail_reply_to text,
  add column mail_keys boolean not null default false,
  add column mail_ending_days integer;
