-- The schema that `migrate` creates. The test packages/database/test/schema.test.ts compares it, and writes it with the option -u.

create table access_rule_counters (
  rule_id uuid not null,
  match_count bigint not null default 0,
  last_matched_at timestamptz,
  organization_id uuid,
  constraint access_rule_counters_pkey PRIMARY KEY (rule_id),
  constraint access_rule_counters_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES access_rules(id) ON DELETE CASCADE
) with (fillfactor=70);
CREATE INDEX access_rule_counters_count ON access_rule_counters (organization_id, match_count, rule_id);
CREATE INDEX access_rule_counters_match ON access_rule_counters (organization_id, COALESCE(last_matched_at, '-infinity'::timestamptz), rule_id);
grant delete, insert, select, update on access_rule_counters to keyward_management;

create table access_rule_sets (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  version uuid not null default gen_random_uuid(),
  rules integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint access_rule_sets_pkey PRIMARY KEY (id),
  constraint access_rule_sets_name UNIQUE (organization_id, name),
  constraint access_rule_sets_organization_id_id_key UNIQUE (organization_id, id),
  constraint access_rule_sets_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint access_rule_sets_name_check CHECK (((length(name) >= 1) AND (length(name) <= 64)))
);
CREATE TRIGGER access_rule_sets_count_added AFTER INSERT ON access_rule_sets REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER access_rule_sets_count_deleted AFTER DELETE ON access_rule_sets REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER access_rule_sets_count_truncated AFTER TRUNCATE ON access_rule_sets FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select, update on access_rule_sets to keyward_management;

create table access_rules (
  id uuid not null,
  organization_id uuid not null,
  kind text not null,
  type text not null,
  value bytea not null,
  scope text not null,
  product_id uuid,
  license_id uuid,
  scope_id uuid generated always as (COALESCE(license_id, product_id)) stored,
  customer_id uuid,
  note text,
  expires_at timestamptz,
  allow_suspended_or_expired boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by jsonb not null,
  mode text not null default 'ENFORCE'::text,
  set_id uuid,
  constraint access_rules_pkey PRIMARY KEY (id),
  constraint access_rules_organization_id_customer_id_fkey FOREIGN KEY (organization_id, customer_id) REFERENCES customers(organization_id, id) ON DELETE CASCADE,
  constraint access_rules_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint access_rules_organization_id_license_id_fkey FOREIGN KEY (organization_id, license_id) REFERENCES licenses(organization_id, id) ON DELETE CASCADE,
  constraint access_rules_organization_id_product_id_fkey FOREIGN KEY (organization_id, product_id) REFERENCES products(organization_id, id) ON DELETE CASCADE,
  constraint access_rules_organization_id_set_id_fkey FOREIGN KEY (organization_id, set_id) REFERENCES access_rule_sets(organization_id, id) ON DELETE CASCADE,
  constraint access_rules_check CHECK (((scope = 'PRODUCT'::text) = (product_id IS NOT NULL))),
  constraint access_rules_check1 CHECK (((scope = 'LICENSE'::text) = (license_id IS NOT NULL))),
  constraint access_rules_check2 CHECK (((type = 'CUSTOMER'::text) = (customer_id IS NOT NULL))),
  constraint access_rules_check3 CHECK (((kind = 'EXCLUSION'::text) OR (NOT allow_suspended_or_expired))),
  constraint access_rules_kind_check CHECK ((kind = ANY (ARRAY['BLACKLIST'::text, 'EXCLUSION'::text, 'RESTRICTION'::text]))),
  constraint access_rules_mode_check CHECK ((mode = ANY (ARRAY['ENFORCE'::text, 'MONITOR'::text]))),
  constraint access_rules_scope_check CHECK ((scope = ANY (ARRAY['LICENSE'::text, 'PRODUCT'::text, 'ORGANIZATION'::text]))),
  constraint access_rules_type_check CHECK ((type = ANY (ARRAY['IP'::text, 'HWID'::text, 'COUNTRY'::text, 'CUSTOMER'::text]))),
  constraint access_rules_types CHECK (
CASE kind
    WHEN 'EXCLUSION'::text THEN (type = ANY (ARRAY['IP'::text, 'HWID'::text]))
    WHEN 'RESTRICTION'::text THEN (type = ANY (ARRAY['IP'::text, 'HWID'::text, 'COUNTRY'::text]))
    ELSE true
END),
  constraint access_rules_value_check CHECK (((length(value) >= 1) AND (length(value) <= 512)))
);
CREATE INDEX access_rules_customer ON access_rules (organization_id, customer_id) WHERE (customer_id IS NOT NULL);
CREATE INDEX access_rules_expired ON access_rules (organization_id, expires_at);
CREATE INDEX access_rules_expiry ON access_rules (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX access_rules_kinds ON access_rules (organization_id, kind, type, scope, id);
CREATE INDEX access_rules_license ON access_rules (organization_id, license_id) WHERE (license_id IS NOT NULL);
CREATE INDEX access_rules_listing ON access_rules (organization_id, id);
CREATE INDEX access_rules_monitored ON access_rules (organization_id, id) WHERE (mode = 'MONITOR'::text);
CREATE INDEX access_rules_product ON access_rules (organization_id, product_id) WHERE (product_id IS NOT NULL);
CREATE INDEX access_rules_scope ON access_rules (organization_id, scope_id, id) WHERE (scope_id IS NOT NULL);
CREATE INDEX access_rules_set ON access_rules (organization_id, set_id, id) WHERE (set_id IS NOT NULL);
CREATE INDEX access_rules_values ON access_rules (organization_id, type, value, id);
CREATE TRIGGER access_rules_count_added AFTER INSERT ON access_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER access_rules_count_deleted AFTER DELETE ON access_rules REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER access_rules_count_truncated AFTER TRUNCATE ON access_rules FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER access_rules_counters AFTER INSERT ON access_rules REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION add_rule_counters();
CREATE TRIGGER access_rules_deleted AFTER DELETE ON access_rules REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_access_rules();
CREATE TRIGGER access_rules_inserted AFTER INSERT ON access_rules REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_access_rules();
CREATE TRIGGER access_rules_sets_deleted AFTER DELETE ON access_rules REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_sets();
CREATE TRIGGER access_rules_sets_inserted AFTER INSERT ON access_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_sets();
CREATE TRIGGER access_rules_sets_updated AFTER UPDATE ON access_rules REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_sets();
CREATE TRIGGER access_rules_truncated BEFORE TRUNCATE ON access_rules FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER access_rules_updated AFTER UPDATE ON access_rules REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_access_rules();
CREATE TRIGGER access_rules_version BEFORE UPDATE ON access_rules FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on access_rules to keyward_management;
grant select (id, organization_id, kind, type, value, scope, product_id, license_id, scope_id, customer_id, expires_at, allow_suspended_or_expired, mode) on access_rules to keyward_validator;

create table activity (
  at timestamptz not null,
  id uuid not null,
  organization_id uuid not null,
  license_id uuid not null,
  type text not null,
  code text,
  machine_id bytea,
  count bigint not null default 1,
  first_at timestamptz not null,
  last_at timestamptz not null,
  actor jsonb,
  constraint activity_pkey PRIMARY KEY (at, id),
  constraint activity_code CHECK ((code ~ '^[A-Z_]{1,40}$'::text)),
  constraint activity_type CHECK ((type ~ '^[A-Z_]{1,40}$'::text))
) partition by RANGE (at);
CREATE INDEX activity_license ON ONLY activity (license_id, id);
CREATE INDEX activity_organization ON ONLY activity (organization_id, id);
CREATE UNIQUE INDEX activity_coalesced ON ONLY activity (at, license_id, code, machine_id) NULLS NOT DISTINCT WHERE (type = 'CHECK'::text);
CREATE TRIGGER activity_noted AFTER INSERT ON activity FOR EACH ROW WHEN (((new.actor IS NULL) AND (new.type = ANY (ARRAY['MACHINE_RELEASED'::text, 'LEASE_ENDED'::text, 'TERM_STARTED'::text])))) EXECUTE FUNCTION note_activity();
grant delete, insert, select on activity to keyward_management;

create table alerts (
  id uuid not null,
  organization_id uuid not null,
  license_id uuid,
  kind text not null default 'OVERUSE'::text,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  acknowledged_at timestamptz,
  noted_at timestamptz not null default now(),
  endpoint_id uuid,
  connection_id uuid,
  constraint alerts_pkey PRIMARY KEY (id),
  constraint alerts_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES commerce_connections(id) ON DELETE CASCADE,
  constraint alerts_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE,
  constraint alerts_license_id_fkey FOREIGN KEY (license_id) REFERENCES license_slots(license_id) ON DELETE CASCADE,
  constraint alerts_kind_check CHECK ((kind = ANY (ARRAY['OVERUSE'::text, 'WEBHOOK_DISABLED'::text, 'EVENT_WAITING'::text]))),
  constraint alerts_subject_check CHECK ((
CASE kind
    WHEN 'OVERUSE'::text THEN license_id
    WHEN 'WEBHOOK_DISABLED'::text THEN endpoint_id
    ELSE connection_id
END IS NOT NULL))
);
CREATE INDEX alerts_acknowledged ON alerts (acknowledged_at) WHERE (acknowledged_at IS NOT NULL);
CREATE INDEX alerts_connection ON alerts (connection_id) WHERE (connection_id IS NOT NULL);
CREATE INDEX alerts_endpoint ON alerts (endpoint_id) WHERE (endpoint_id IS NOT NULL);
CREATE INDEX alerts_license ON alerts (license_id);
CREATE INDEX alerts_listing ON alerts (organization_id, id);
CREATE INDEX alerts_unacknowledged ON alerts (organization_id, id) WHERE (acknowledged_at IS NULL);
CREATE UNIQUE INDEX alerts_open ON alerts (license_id, kind) WHERE (acknowledged_at IS NULL);
CREATE TRIGGER alerts_noted_again BEFORE UPDATE OF count ON alerts FOR EACH ROW WHEN (((new.kind = 'OVERUSE'::text) AND (new.count > old.count) AND (old.noted_at < (now() - '01:00:00'::interval)))) EXECUTE FUNCTION note_alert();
CREATE TRIGGER alerts_noted_opened AFTER INSERT ON alerts FOR EACH ROW WHEN ((new.kind = 'OVERUSE'::text)) EXECUTE FUNCTION note_alert();
grant delete, insert, select, update on alerts to keyward_management;

create table audit_log (
  id uuid not null,
  organization_id uuid,
  at timestamptz not null default now(),
  actor jsonb not null,
  action text not null,
  resource_type text not null,
  resource_id uuid,
  changes jsonb,
  before jsonb,
  bytes integer not null default 0,
  constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_action ON audit_log (organization_id, action, id);
CREATE INDEX audit_log_actor ON audit_log (organization_id, ((actor ->> 'id'::text)), id);
CREATE INDEX audit_log_listing ON audit_log (organization_id, id);
CREATE INDEX audit_log_operator ON audit_log (id) WHERE ((actor ->> 'type'::text) = 'OPERATOR'::text);
CREATE INDEX audit_log_resource ON audit_log (organization_id, resource_id, id) WHERE (resource_id IS NOT NULL);
CREATE INDEX audit_log_resource_type ON audit_log (organization_id, resource_type, id);
CREATE TRIGGER audit_log_bytes_added AFTER INSERT ON audit_log REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER audit_log_bytes_deleted AFTER DELETE ON audit_log REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER audit_log_bytes_truncated AFTER TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select on audit_log to keyward_management;

create table blacklisted_checks (
  license_id uuid not null,
  organization_id uuid not null,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  since timestamptz not null default now(),
  constraint blacklisted_checks_pkey PRIMARY KEY (license_id)
);
CREATE INDEX blacklisted_checks_organization ON blacklisted_checks (organization_id);
CREATE INDEX blacklisted_checks_since ON blacklisted_checks (since);
grant delete, select, update on blacklisted_checks to keyward_management;

create table change_log (
  xid xid8 not null default pg_current_xact_id(),
  entity "char" not null,
  id uuid not null,
  machine_id bytea,
  organization_id uuid
) with (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_insert_scale_factor=0.5);
CREATE INDEX change_log_xid ON change_log (xid);
grant select on change_log to keyward_management;
grant select on change_log to keyward_validator;

create table check_counts (
  hour timestamptz not null,
  organization_id uuid not null,
  product_id uuid,
  code text not null,
  count bigint not null,
  constraint check_counts_key UNIQUE NULLS NOT DISTINCT (hour, organization_id, product_id, code),
  constraint check_counts_code CHECK ((code ~ '^[A-Z_]{1,40}$'::text))
) partition by RANGE (hour);
CREATE INDEX check_counts_organization ON ONLY check_counts (organization_id, hour);
grant delete, insert, select on check_counts to keyward_management;

create table commerce_connections (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  shop text not null,
  mode text not null,
  states text[] not null default '{paid,canceled,refunded,disputed}'::text[],
  unknown_prices text not null default 'wait'::text,
  secret_encrypted bytea not null,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint commerce_connections_pkey PRIMARY KEY (id),
  constraint commerce_connections_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint commerce_connections_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint commerce_connections_shop_check CHECK ((shop = ANY (ARRAY['stripe'::text, 'paddle'::text, 'polar'::text, 'lemonsqueezy'::text, 'fastspring'::text]))),
  constraint commerce_connections_unknown_prices_check CHECK ((unknown_prices = ANY (ARRAY['wait'::text, 'ignore'::text])))
);
CREATE INDEX commerce_connections_listing ON commerce_connections (organization_id, id);
CREATE TRIGGER commerce_connections_version BEFORE UPDATE ON commerce_connections FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on commerce_connections to keyward_management;

create table commerce_events (
  id uuid not null,
  organization_id uuid not null,
  connection_id uuid not null,
  event_id text not null,
  type text not null,
  body text not null,
  bytes integer not null,
  state text not null default 'PENDING'::text,
  order_id text,
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  waits_for text[] not null default '{}'::text[],
  error text,
  received_at timestamptz not null default now(),
  handled_at timestamptz,
  constraint commerce_events_pkey PRIMARY KEY (id),
  constraint commerce_events_connection_id_event_id_key UNIQUE (connection_id, event_id),
  constraint commerce_events_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES commerce_connections(id) ON DELETE CASCADE,
  constraint commerce_events_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'WAITING'::text, 'DONE'::text, 'IGNORED'::text, 'FAILED'::text])))
);
CREATE INDEX commerce_events_due ON commerce_events (organization_id, next_attempt_at) WHERE (next_attempt_at IS NOT NULL);
CREATE INDEX commerce_events_listing ON commerce_events (connection_id, id);
CREATE INDEX commerce_events_waiting ON commerce_events (organization_id) WHERE (state = 'WAITING'::text);
CREATE TRIGGER commerce_events_bytes_added AFTER INSERT ON commerce_events REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER commerce_events_bytes_deleted AFTER DELETE ON commerce_events REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER commerce_events_bytes_truncated AFTER TRUNCATE ON commerce_events FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select, update on commerce_events to keyward_management;

create table credential_uses (
  credential_id uuid not null,
  last_used_at timestamptz not null,
  constraint credential_uses_pkey PRIMARY KEY (credential_id),
  constraint credential_uses_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credentials(id) ON DELETE CASCADE
);
grant delete, insert, select, update on credential_uses to keyward_management;

create table credentials (
  id uuid not null,
  organization_id uuid not null,
  kind text not null,
  member_id uuid,
  name text not null,
  prefix text not null,
  secret_hash bytea not null,
  permissions text[] not null default '{}'::text[],
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  created_by jsonb,
  made_by_member uuid,
  product_id uuid,
  constraint credentials_pkey PRIMARY KEY (id),
  constraint credentials_secret_hash_key UNIQUE (secret_hash),
  constraint credentials_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint credentials_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint credentials_check CHECK (((kind = 'ACCESS_TOKEN'::text) = (member_id IS NOT NULL))),
  constraint credentials_kind_check CHECK ((kind = ANY (ARRAY['API_KEY'::text, 'MANAGEMENT_TOKEN'::text, 'ACCESS_TOKEN'::text]))),
  constraint credentials_product CHECK (((kind = 'API_KEY'::text) OR (product_id IS NULL))),
  constraint credentials_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX credentials_expiry ON credentials (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX credentials_made_by_member ON credentials (organization_id, made_by_member) WHERE (made_by_member IS NOT NULL);
CREATE INDEX credentials_member ON credentials (member_id) WHERE (member_id IS NOT NULL);
CREATE INDEX credentials_organization ON credentials (organization_id, kind, id);
CREATE INDEX credentials_product ON credentials (product_id) WHERE (product_id IS NOT NULL);
CREATE INDEX credentials_revoked ON credentials (revoked_at) WHERE (revoked_at IS NOT NULL);
CREATE INDEX credentials_revoked_by_organization ON credentials (organization_id, revoked_at) WHERE (revoked_at IS NOT NULL);
CREATE INDEX credentials_valid ON credentials (organization_id, kind, id) WHERE (revoked_at IS NULL);
CREATE TRIGGER credentials_count_added AFTER INSERT ON credentials REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_credentials();
CREATE TRIGGER credentials_count_deleted AFTER DELETE ON credentials REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_credentials();
CREATE TRIGGER credentials_count_truncated AFTER TRUNCATE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER credentials_count_updated AFTER UPDATE ON credentials REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_credentials();
CREATE TRIGGER credentials_deleted AFTER DELETE ON credentials REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_credentials();
CREATE TRIGGER credentials_inserted AFTER INSERT ON credentials REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_credentials();
CREATE TRIGGER credentials_keep_product BEFORE UPDATE OF product_id ON credentials FOR EACH ROW WHEN ((old.product_id IS DISTINCT FROM new.product_id)) EXECUTE FUNCTION keep_product_of_key();
CREATE TRIGGER credentials_truncated BEFORE TRUNCATE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER credentials_updated AFTER UPDATE ON credentials REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_credentials();
grant delete, insert, select, update on credentials to keyward_management;
grant select (id, organization_id, kind, secret_hash, expires_at, revoked_at, product_id) on credentials to keyward_validator;

create table customers (
  id uuid not null,
  organization_id uuid not null,
  email text not null,
  name text,
  external_id text,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint customers_pkey PRIMARY KEY (id),
  constraint customers_organization_id_external_id_key UNIQUE (organization_id, external_id),
  constraint customers_organization_id_id_key UNIQUE (organization_id, id),
  constraint customers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX customers_email ON customers (organization_id, lower(email));
CREATE INDEX customers_metadata ON customers USING gin (metadata jsonb_path_ops) WHERE (metadata <> '{}'::jsonb);
CREATE INDEX customers_search ON customers USING gin (organization_id, customer_text(email, name, external_id) gin_trgm_ops);
CREATE TRIGGER customers_bytes_added AFTER INSERT ON customers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER customers_bytes_deleted AFTER DELETE ON customers REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER customers_bytes_updated AFTER UPDATE OF metadata ON customers FOR EACH ROW WHEN ((old.metadata IS DISTINCT FROM new.metadata)) EXECUTE FUNCTION count_changed_bytes();
CREATE TRIGGER customers_count_added AFTER INSERT ON customers REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER customers_count_deleted AFTER DELETE ON customers REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER customers_count_truncated AFTER TRUNCATE ON customers FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER customers_deleted AFTER DELETE ON customers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_customers();
CREATE TRIGGER customers_inserted AFTER INSERT ON customers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_customers();
CREATE TRIGGER customers_truncated BEFORE TRUNCATE ON customers FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER customers_updated AFTER UPDATE ON customers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_customers();
CREATE TRIGGER customers_version BEFORE UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on customers to keyward_management;
grant select (id, organization_id) on customers to keyward_validator;

create table daily_entries (
  id uuid not null,
  at timestamptz not null,
  constraint daily_entries_pkey PRIMARY KEY (id)
);
grant delete, select on daily_entries to keyward_management;

create table deleted_organizations (
  id uuid not null,
  deleted_at timestamptz not null default now(),
  constraint deleted_organizations_pkey PRIMARY KEY (id)
);
grant delete, select on deleted_organizations to keyward_management;

create table event_marks (
  resource_id uuid not null,
  mark text not null,
  due timestamptz not null,
  constraint event_marks_pkey PRIMARY KEY (resource_id, mark)
);
CREATE INDEX event_marks_due ON event_marks (due);
grant delete, insert, select on event_marks to keyward_management;

create table event_schedules (
  name text not null,
  until timestamptz not null,
  constraint event_schedules_pkey PRIMARY KEY (name)
);
grant delete, insert, select, update on event_schedules to keyward_management;

create table events (
  id uuid not null,
  organization_id uuid not null,
  type text not null,
  resource_id uuid,
  data json not null,
  bytes integer not null default 0,
  is_of_caller boolean not null default false,
  constraint events_pkey PRIMARY KEY (id)
);
CREATE INDEX events_listing ON events (organization_id, id);
CREATE INDEX events_resource ON events (organization_id, resource_id, id) WHERE (resource_id IS NOT NULL);
CREATE INDEX events_type ON events (organization_id, type, id);
CREATE TRIGGER events_bytes_added AFTER INSERT ON events REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER events_bytes_deleted AFTER DELETE ON events REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER events_bytes_truncated AFTER TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select on events to keyward_management;

create table feed_marks (
  at timestamptz not null,
  snapshot pg_snapshot not null
);
CREATE INDEX feed_marks_at ON feed_marks (at);

create table feed_state (
  single boolean not null default true,
  pruned pg_snapshot not null,
  server text not null,
  gone pg_snapshot not null,
  reloads bigint not null default 0,
  constraint feed_state_pkey PRIMARY KEY (single),
  constraint feed_state_single_check CHECK (single)
);
grant select on feed_state to keyward_management;
grant select on feed_state to keyward_validator;

create table flushes (
  validator_id uuid not null,
  number bigint not null,
  at timestamptz not null default now(),
  constraint flushes_pkey PRIMARY KEY (validator_id)
);

create table folded_rules (
  gone uuid not null,
  kept uuid not null,
  folded_at timestamptz not null default now(),
  constraint folded_rules_pkey PRIMARY KEY (gone),
  constraint folded_rules_kept_fkey FOREIGN KEY (kept) REFERENCES access_rules(id) ON DELETE CASCADE
);
CREATE INDEX folded_rules_age ON folded_rules (folded_at);
CREATE INDEX folded_rules_kept ON folded_rules (kept);
grant delete, insert, select, update on folded_rules to keyward_management;

create table idempotency_keys (
  owner text not null,
  key text not null,
  request_hash bytea not null,
  status integer,
  headers jsonb,
  body jsonb,
  created_at timestamptz not null default now(),
  organization_id uuid,
  bytes integer not null default 0,
  constraint idempotency_keys_pkey PRIMARY KEY (owner, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_bytes ON idempotency_keys (organization_id, created_at) INCLUDE (bytes) WHERE (organization_id IS NOT NULL);
grant delete, insert, select, update on idempotency_keys to keyward_management;

create table internal_keys (
  purpose text not null,
  secret text not null default encode(sha256((uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))), 'hex'::text),
  changed_at timestamptz not null default now(),
  constraint internal_keys_pkey PRIMARY KEY (purpose),
  constraint internal_keys_secret_check CHECK ((length(secret) >= 32))
);
grant select (purpose, secret) on internal_keys to keyward_management;
grant select (purpose, secret) on internal_keys to keyward_validator;

create table invitations (
  member_id uuid not null,
  organization_id uuid not null,
  secret_hash bytea not null,
  invited_by jsonb not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint invitations_pkey PRIMARY KEY (member_id),
  constraint invitations_secret_hash_key UNIQUE (secret_hash),
  constraint invitations_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint invitations_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX invitations_expiry ON invitations (expires_at);
CREATE INDEX invitations_organization ON invitations (organization_id);
grant delete, insert, select, update on invitations to keyward_management;

create table license_job_rows (
  job_id uuid not null,
  license_id uuid not null,
  version timestamptz,
  before jsonb,
  constraint license_job_rows_pkey PRIMARY KEY (job_id, license_id),
  constraint license_job_rows_job_id_fkey FOREIGN KEY (job_id) REFERENCES license_jobs(id) ON DELETE CASCADE
);
grant delete, insert, select, update on license_job_rows to keyward_management;

create table license_jobs (
  id uuid not null,
  organization_id uuid not null,
  action jsonb not null,
  actor jsonb not null,
  state text not null default 'running'::text,
  total integer not null,
  done integer not null default 0,
  changed integer not null default 0,
  skipped integer not null default 0,
  failed integer not null default 0,
  restored integer not null default 0,
  kept integer not null default 0,
  errors jsonb not null default '[]'::jsonb,
  after uuid,
  problem text,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint license_jobs_pkey PRIMARY KEY (id),
  constraint license_jobs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint license_jobs_state_check CHECK ((state = ANY (ARRAY['running'::text, 'completed'::text, 'canceled'::text, 'undoing'::text, 'undone'::text])))
);
CREATE INDEX license_jobs_ended ON license_jobs (ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX license_jobs_listing ON license_jobs (organization_id, id);
CREATE INDEX license_jobs_running ON license_jobs (organization_id) WHERE (ended_at IS NULL);
grant delete, insert, select, update on license_jobs to keyward_management;

create table license_slots (
  license_id uuid not null,
  used integer not null default 0,
  unrecorded bigint not null default 0,
  constraint license_slots_pkey PRIMARY KEY (license_id),
  constraint license_slots_license_id_fkey FOREIGN KEY (license_id) REFERENCES licenses(id) ON DELETE CASCADE,
  constraint license_slots_used_check CHECK ((used >= 0))
) with (fillfactor=70);
grant select (license_id, used) on license_slots to keyward_validator;
grant select, update on license_slots to keyward_management;

create table license_templates (
  id uuid not null,
  organization_id uuid not null,
  product_id uuid not null,
  name text not null,
  policy_type text not null,
  max_machines integer,
  duration_days integer,
  max_releases integer,
  lease_seconds integer,
  grace_days integer not null,
  file_days integer,
  entitlements jsonb,
  metadata jsonb not null default '{}'::jsonb,
  former jsonb not null default '{}'::jsonb,
  application jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  price_ids text[] not null default '{}'::text[],
  orders jsonb not null default '{"refund": "revoke", "dispute": "suspend", "quantity": "licenses"}'::jsonb,
  constraint license_templates_pkey PRIMARY KEY (id),
  constraint license_templates_organization_id_product_id_id_key UNIQUE (organization_id, product_id, id),
  constraint license_templates_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint license_templates_organization_id_product_id_fkey FOREIGN KEY (organization_id, product_id) REFERENCES products(organization_id, id) ON DELETE CASCADE,
  constraint license_templates_duration_days_check CHECK (((duration_days >= 1) AND (duration_days <= 36500))),
  constraint license_templates_entitlements CHECK (are_entitlements(entitlements, true)),
  constraint license_templates_file_days_check CHECK (((file_days >= 1) AND (file_days <= 366))),
  constraint license_templates_grace_days_check CHECK (((grace_days >= 0) AND (grace_days <= 90))),
  constraint license_templates_lease_seconds_check CHECK (((lease_seconds >= 60) AND (lease_seconds <= 31622400))),
  constraint license_templates_max_machines_check CHECK ((max_machines >= 1)),
  constraint license_templates_max_releases_check CHECK (((max_releases >= 0) AND (max_releases <= 1000))),
  constraint license_templates_policy_type_check CHECK ((policy_type = ANY (ARRAY['PERPETUAL'::text, 'SUBSCRIPTION'::text, 'TRIAL'::text]))),
  constraint license_templates_price_ids_check CHECK ((array_position(price_ids, NULL::text) IS NULL)),
  constraint license_templates_term CHECK (((policy_type <> 'PERPETUAL'::text) OR (duration_days IS NULL)))
);
CREATE INDEX license_templates_prices ON license_templates USING gin (price_ids);
CREATE INDEX license_templates_running ON license_templates (id) WHERE ((application IS NOT NULL) AND ((application ->> 'endedAt'::text) IS NULL));
CREATE TRIGGER license_templates_bytes_added AFTER INSERT ON license_templates REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER license_templates_bytes_deleted AFTER DELETE ON license_templates REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER license_templates_bytes_truncated AFTER TRUNCATE ON license_templates FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER license_templates_bytes_updated AFTER UPDATE OF metadata, former ON license_templates FOR EACH ROW WHEN (((old.metadata IS DISTINCT FROM new.metadata) OR (old.former IS DISTINCT FROM new.former))) EXECUTE FUNCTION count_changed_bytes();
CREATE TRIGGER license_templates_version BEFORE UPDATE OF name, policy_type, max_machines, duration_days, max_releases, lease_seconds, grace_days, file_days, entitlements, metadata, price_ids, orders ON license_templates FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on license_templates to keyward_management;

create table licenses (
  id uuid not null,
  organization_id uuid not null,
  product_id uuid not null,
  customer_id uuid not null,
  key text not null,
  status text not null default 'active'::text,
  policy_type text not null,
  max_machines integer,
  expires_at timestamptz,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  suspended_at timestamptz,
  revoked_at timestamptz,
  entitlements jsonb,
  duration_days integer,
  max_releases integer,
  lease_seconds integer,
  grace_days integer not null default 0,
  file_days integer,
  template_id uuid,
  external_id text,
  constraint licenses_pkey PRIMARY KEY (id),
  constraint licenses_organization_id_id_key UNIQUE (organization_id, id),
  constraint licenses_organization_id_key_key UNIQUE (organization_id, key),
  constraint licenses_organization_id_customer_id_fkey FOREIGN KEY (organization_id, customer_id) REFERENCES customers(organization_id, id),
  constraint licenses_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint licenses_organization_id_product_id_fkey FOREIGN KEY (organization_id, product_id) REFERENCES products(organization_id, id),
  constraint licenses_template_fkey FOREIGN KEY (organization_id, product_id, template_id) REFERENCES license_templates(organization_id, product_id, id),
  constraint licenses_duration_days_check CHECK (((duration_days >= 1) AND (duration_days <= 36500))),
  constraint licenses_entitlements CHECK (are_entitlements(entitlements, true)),
  constraint licenses_file_days_check CHECK (((file_days >= 1) AND (file_days <= 366))),
  constraint licenses_grace_days_check CHECK (((grace_days >= 0) AND (grace_days <= 90))),
  constraint licenses_lease_seconds_check CHECK (((lease_seconds >= 60) AND (lease_seconds <= 31622400))),
  constraint licenses_max_machines_check CHECK ((max_machines >= 1)),
  constraint licenses_max_releases_check CHECK (((max_releases >= 0) AND (max_releases <= 1000))),
  constraint licenses_policy_type_check CHECK ((policy_type = ANY (ARRAY['PERPETUAL'::text, 'SUBSCRIPTION'::text, 'TRIAL'::text]))),
  constraint licenses_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text, 'revoked'::text]))),
  constraint licenses_term CHECK (((policy_type = 'PERPETUAL'::text) = ((expires_at IS NULL) AND (duration_days IS NULL))))
);
CREATE INDEX licenses_by_expiry ON licenses (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX licenses_customer ON licenses (organization_id, customer_id, id);
CREATE INDEX licenses_entitlements ON licenses (product_id, octet_length((entitlements)::text)) WHERE (entitlements IS NOT NULL);
CREATE INDEX licenses_expiry ON licenses (organization_id, expires_at, id) WHERE ((status = 'active'::text) AND (expires_at IS NOT NULL));
CREATE INDEX licenses_grace_end ON licenses ((((expires_at AT TIME ZONE 'UTC'::text) + ((grace_days)::double precision * '24:00:00'::interval)) AT TIME ZONE 'UTC'::text)) WHERE ((grace_days > 0) AND (status <> 'revoked'::text));
CREATE INDEX licenses_key_search ON licenses (organization_id, upper(replace(key, ' '::text, ''::text)) COLLATE "C");
CREATE INDEX licenses_leased ON licenses (id) WHERE ((lease_seconds IS NOT NULL) AND (max_machines IS NOT NULL));
CREATE INDEX licenses_listed_by_expiry ON licenses (organization_id, COALESCE(expires_at, 'infinity'::timestamptz), id);
CREATE INDEX licenses_metadata ON licenses USING gin (metadata jsonb_path_ops) WHERE (metadata <> '{}'::jsonb);
CREATE INDEX licenses_not_started ON licenses (id) WHERE ((duration_days IS NOT NULL) AND (expires_at IS NULL));
CREATE INDEX licenses_product ON licenses (organization_id, product_id, id);
CREATE INDEX licenses_status ON licenses (organization_id, status, id);
CREATE INDEX licenses_template ON licenses (organization_id, template_id, id) WHERE (template_id IS NOT NULL);
CREATE UNIQUE INDEX licenses_external_id ON licenses (organization_id, external_id) WHERE (external_id IS NOT NULL);
CREATE TRIGGER licenses_bytes_added AFTER INSERT ON licenses REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER licenses_bytes_deleted AFTER DELETE ON licenses REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER licenses_bytes_updated AFTER UPDATE OF metadata ON licenses FOR EACH ROW WHEN ((old.metadata IS DISTINCT FROM new.metadata)) EXECUTE FUNCTION count_changed_bytes();
CREATE TRIGGER licenses_count_added AFTER INSERT ON licenses REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER licenses_count_deleted AFTER DELETE ON licenses REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER licenses_count_truncated AFTER TRUNCATE ON licenses FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER licenses_deleted AFTER DELETE ON licenses REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_licenses();
CREATE TRIGGER licenses_inserted AFTER INSERT ON licenses REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_licenses();
CREATE TRIGGER licenses_leases AFTER UPDATE OF lease_seconds, max_machines ON licenses FOR EACH ROW WHEN ((((old.lease_seconds IS NULL) OR (old.max_machines IS NULL)) IS DISTINCT FROM ((new.lease_seconds IS NULL) OR (new.max_machines IS NULL)))) EXECUTE FUNCTION change_leases();
CREATE TRIGGER licenses_limit BEFORE UPDATE OF max_machines ON licenses FOR EACH ROW WHEN ((old.max_machines IS DISTINCT FROM new.max_machines)) EXECUTE FUNCTION lock_license_slots();
CREATE TRIGGER licenses_slots AFTER INSERT ON licenses REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION add_license_slots();
CREATE TRIGGER licenses_truncated BEFORE TRUNCATE ON licenses FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER licenses_updated AFTER UPDATE ON licenses REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_licenses();
CREATE TRIGGER licenses_version BEFORE UPDATE ON licenses FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on licenses to keyward_management;
grant select (id, organization_id, product_id, customer_id, key, status, max_machines, expires_at, entitlements, duration_days, max_releases, lease_seconds, grace_days) on licenses to keyward_validator;

create table machines (
  id uuid not null,
  license_id uuid not null,
  machine_id bytea not null,
  hostname text,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  lease_ends_at timestamptz,
  organization_id uuid,
  file_ends_at timestamptz,
  constraint machines_pkey PRIMARY KEY (license_id, machine_id),
  constraint machines_license_id_fkey FOREIGN KEY (license_id) REFERENCES license_slots(license_id) ON DELETE CASCADE,
  constraint machines_machine_id_check CHECK (((length(machine_id) >= 1) AND (length(machine_id) <= 512)))
) with (fillfactor=90);
CREATE INDEX machines_by_hostname ON machines (organization_id, lower(hostname) COLLATE "C", id) WHERE (hostname IS NOT NULL);
CREATE INDEX machines_by_machine_id ON machines (organization_id, machine_id, id);
CREATE INDEX machines_leases ON machines (license_id, lease_ends_at) WHERE (lease_ends_at IS NOT NULL);
CREATE UNIQUE INDEX machines_listing ON machines (license_id, id);
CREATE TRIGGER machines_added AFTER INSERT ON machines REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION log_machines();
CREATE TRIGGER machines_count_truncated AFTER TRUNCATE ON machines FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER machines_identity BEFORE UPDATE OF license_id, machine_id ON machines FOR EACH ROW WHEN (((old.license_id IS DISTINCT FROM new.license_id) OR (old.machine_id IS DISTINCT FROM new.machine_id))) EXECUTE FUNCTION refuse_update();
CREATE TRIGGER machines_noted_added AFTER INSERT ON machines REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER machines_noted_deleted AFTER DELETE ON machines REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_machines();
CREATE TRIGGER machines_organization BEFORE INSERT ON machines FOR EACH ROW WHEN ((new.organization_id IS NULL)) EXECUTE FUNCTION set_organization_of_machine();
CREATE TRIGGER machines_removed AFTER DELETE ON machines REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION log_machines();
CREATE TRIGGER machines_truncated BEFORE TRUNCATE ON machines FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
grant delete, insert, select, update on machines to keyward_management;
grant select (id, license_id, machine_id) on machines to keyward_validator;

create table mails (
  id uuid not null,
  organization_id uuid not null,
  template text not null,
  customer_id uuid,
  recipient text,
  license_ids uuid[] not null,
  ends_at timestamptz,
  status text not null default 'PENDING'::text,
  attempts integer not null default 0,
  attempted_at timestamptz,
  next_attempt_at timestamptz default now(),
  worker uuid,
  error text,
  constraint mails_pkey PRIMARY KEY (id),
  constraint mails_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES customers(id) ON DELETE SET NULL,
  constraint mails_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint mails_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'SUCCEEDED'::text, 'FAILED'::text]))),
  constraint mails_template_check CHECK ((template = ANY (ARRAY['key'::text, 'ending'::text, 'portal'::text])))
);
CREATE INDEX mails_attempted ON mails (organization_id, attempted_at) WHERE (attempted_at IS NOT NULL);
CREATE INDEX mails_claimed ON mails (worker) WHERE (worker IS NOT NULL);
CREATE INDEX mails_customer ON mails (customer_id, id);
CREATE INDEX mails_due ON mails (organization_id, next_attempt_at) WHERE ((status = 'PENDING'::text) AND (worker IS NULL));
CREATE INDEX mails_listing ON mails (organization_id, id);
grant delete, insert, select, update on mails to keyward_management;

create table members (
  id uuid not null,
  organization_id uuid not null,
  email text not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  openid_issuer text,
  openid_subject text,
  constraint members_pkey PRIMARY KEY (id),
  constraint members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint members_openid_check CHECK (((openid_issuer IS NULL) = (openid_subject IS NULL)))
);
CREATE INDEX members_by_email ON members (lower(email));
CREATE UNIQUE INDEX members_email ON members (organization_id, lower(email));
CREATE UNIQUE INDEX members_openid ON members (openid_issuer, openid_subject, organization_id) WHERE (openid_subject IS NOT NULL);
CREATE TRIGGER members_count_added AFTER INSERT ON members REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER members_count_deleted AFTER DELETE ON members REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER members_count_truncated AFTER TRUNCATE ON members FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER members_version BEFORE UPDATE ON members FOR EACH ROW EXECUTE FUNCTION next_version();
CREATE TRIGGER unbind_openid BEFORE UPDATE OF email ON members FOR EACH ROW WHEN ((lower(old.email) <> lower(new.email))) EXECUTE FUNCTION members_unbind_openid();
grant delete, insert, select, update on members to keyward_management;

create table merged_customers (
  id uuid not null,
  organization_id uuid not null,
  merged_into uuid not null,
  merged_at timestamptz not null default now(),
  constraint merged_customers_pkey PRIMARY KEY (id),
  constraint merged_customers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX merged_customers_age ON merged_customers (merged_at);
CREATE INDEX merged_customers_into ON merged_customers (organization_id, merged_into);
grant delete, insert, select, update on merged_customers to keyward_management;

create table migrations (
  name text not null,
  applied_at timestamptz not null default now(),
  constraint migrations_pkey PRIMARY KEY (name)
);
grant select on migrations to keyward_management;
grant select on migrations to keyward_validator;

create table monitored_matches (
  rule_id uuid not null,
  hour timestamptz not null,
  count bigint not null,
  constraint monitored_matches_pkey PRIMARY KEY (rule_id, hour)
);
CREATE INDEX monitored_matches_hour ON monitored_matches (hour);
grant delete, select on monitored_matches to keyward_management;

create table occurrences (
  id uuid not null default new_id(),
  xid xid8 not null default pg_current_xact_id(),
  kind text not null,
  organization_id uuid,
  license_id uuid,
  machine_id bytea,
  details jsonb,
  ids uuid[],
  license_ids uuid[],
  machine_ids bytea[],
  hostnames text[],
  first_seen timestamptz[],
  last_seen timestamptz[],
  lease_ends timestamptz[],
  changes integer not null default 1,
  constraint occurrences_pkey PRIMARY KEY (id)
);
CREATE INDEX occurrences_xid ON occurrences (xid);
grant delete, select on occurrences to keyward_management;

create table online_steps (
  name text not null,
  done_at timestamptz not null default now(),
  constraint online_steps_pkey PRIMARY KEY (name)
);

create table openid_attempts (
  secret_hash bytea not null,
  redeemed_at timestamptz,
  email text,
  expires_at timestamptz not null,
  issuer text,
  subject text,
  constraint openid_attempts_pkey PRIMARY KEY (secret_hash),
  constraint openid_attempts_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX openid_attempts_expiry ON openid_attempts (expires_at);
grant delete, insert, select, update on openid_attempts to keyward_management;

create table order_references (
  organization_id uuid not null,
  provider text not null,
  reference text not null,
  order_id text not null,
  constraint order_references_pkey PRIMARY KEY (organization_id, provider, reference),
  constraint order_references_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX order_references_order ON order_references (organization_id, provider, order_id);
CREATE TRIGGER order_references_bytes_added AFTER INSERT ON order_references REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER order_references_bytes_deleted AFTER DELETE ON order_references REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER order_references_bytes_truncated AFTER TRUNCATE ON order_references FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select, update on order_references to keyward_management;

create table orders (
  id uuid not null,
  organization_id uuid not null,
  provider text not null,
  order_id text not null,
  line text not null,
  template_id uuid not null,
  state text not null,
  quantity integer not null,
  paid_through timestamptz,
  occurred_at timestamptz not null,
  license_ids uuid[] not null default '{}'::uuid[],
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint orders_pkey PRIMARY KEY (id),
  constraint orders_organization_id_provider_order_id_line_key UNIQUE (organization_id, provider, order_id, line),
  constraint orders_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint orders_quantity_check CHECK (((quantity >= 1) AND (quantity <= 100))),
  constraint orders_state_check CHECK ((state = ANY (ARRAY['paid'::text, 'canceled'::text, 'refunded'::text, 'disputed'::text])))
);
CREATE INDEX orders_recent ON orders (organization_id, id);
CREATE TRIGGER orders_bytes_added AFTER INSERT ON orders REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER orders_bytes_deleted AFTER DELETE ON orders REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER orders_bytes_truncated AFTER TRUNCATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select, update on orders to keyward_management;

create table organization_usage (
  organization_id uuid not null,
  quota text not null,
  used bigint not null,
  day date
);
CREATE INDEX organization_usage_quota ON organization_usage (organization_id, quota);
grant select on organization_usage to keyward_management;

create table organizations (
  id uuid not null,
  name text not null,
  plan text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  quotas jsonb not null default '{}'::jsonb,
  suspended_at timestamptz,
  time_zone text,
  signs_answers boolean not null default true,
  accent_color text,
  mail_sender_name text,
  mail_reply_to text,
  mail_keys boolean not null default false,
  mail_ending_days integer,
  mail_portal boolean not null default false,
  constraint organizations_pkey PRIMARY KEY (id),
  constraint organizations_accent_color_check CHECK ((accent_color ~ '^#[0-9a-f]{6}$'::text)),
  constraint organizations_plan_check CHECK ((plan = ANY (ARRAY['FREE'::text, 'LITE'::text, 'STANDARD'::text])))
);
CREATE TRIGGER organizations_deleted AFTER DELETE ON organizations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_organizations();
CREATE TRIGGER organizations_inserted AFTER INSERT ON organizations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_organizations();
CREATE TRIGGER organizations_noted_deleted AFTER DELETE ON organizations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_organizations();
CREATE TRIGGER organizations_truncated BEFORE TRUNCATE ON organizations FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER organizations_updated AFTER UPDATE ON organizations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_organizations();
CREATE TRIGGER organizations_version BEFORE UPDATE ON organizations FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on organizations to keyward_management;
grant select (id) on organizations to keyward_validator;

create table passkey_challenges (
  challenge bytea not null,
  member_id uuid,
  expires_at timestamptz not null,
  constraint passkey_challenges_pkey PRIMARY KEY (challenge),
  constraint passkey_challenges_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE
);
CREATE INDEX passkey_challenges_expiry ON passkey_challenges (expires_at);
CREATE INDEX passkey_challenges_member ON passkey_challenges (member_id) WHERE (member_id IS NOT NULL);
grant delete, insert, select, update on passkey_challenges to keyward_management;

create table passkeys (
  id uuid not null,
  organization_id uuid not null,
  member_id uuid not null,
  name text not null,
  credential_id bytea not null,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null default '{}'::text[],
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  constraint passkeys_pkey PRIMARY KEY (id),
  constraint passkeys_credential_id_key UNIQUE (credential_id),
  constraint passkeys_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint passkeys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX passkeys_member ON passkeys (member_id);
CREATE INDEX passkeys_organization ON passkeys (organization_id);
grant delete, insert, select, update on passkeys to keyward_management;

create table portal_sessions (
  id uuid not null,
  organization_id uuid not null,
  customer_id uuid not null,
  secret_hash bytea not null,
  actions text[] not null,
  is_preview boolean not null,
  return_url text,
  acts integer not null default 0,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  expires_at timestamptz not null,
  constraint portal_sessions_pkey PRIMARY KEY (id),
  constraint portal_sessions_secret_hash_key UNIQUE (secret_hash),
  constraint portal_sessions_organization_id_customer_id_fkey FOREIGN KEY (organization_id, customer_id) REFERENCES customers(organization_id, id) ON DELETE CASCADE,
  constraint portal_sessions_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint portal_sessions_actions_check CHECK (((actions <@ '{release,files}'::text[]) AND (array_position(actions, NULL::text) IS NULL))),
  constraint portal_sessions_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX portal_sessions_customer ON portal_sessions (organization_id, customer_id, created_at);
CREATE INDEX portal_sessions_expiry ON portal_sessions (expires_at);
CREATE TRIGGER portal_sessions_count_added AFTER INSERT ON portal_sessions REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER portal_sessions_count_deleted AFTER DELETE ON portal_sessions REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER portal_sessions_count_truncated AFTER TRUNCATE ON portal_sessions FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
grant delete, insert, select, update on portal_sessions to keyward_management;

create table products (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  entitlements jsonb,
  constraint products_pkey PRIMARY KEY (id),
  constraint products_organization_id_id_key UNIQUE (organization_id, id),
  constraint products_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint products_entitlements CHECK (are_entitlements(entitlements, false))
);
CREATE TRIGGER products_bytes_added AFTER INSERT ON products REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER products_bytes_deleted AFTER DELETE ON products REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_bytes();
CREATE TRIGGER products_bytes_updated AFTER UPDATE OF metadata ON products FOR EACH ROW WHEN ((old.metadata IS DISTINCT FROM new.metadata)) EXECUTE FUNCTION count_changed_bytes();
CREATE TRIGGER products_count_added AFTER INSERT ON products REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER products_count_deleted AFTER DELETE ON products REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER products_count_truncated AFTER TRUNCATE ON products FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER products_deleted AFTER DELETE ON products REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_products();
CREATE TRIGGER products_inserted AFTER INSERT ON products REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_products();
CREATE TRIGGER products_revoke_keys AFTER DELETE ON products REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION revoke_keys_of_products();
CREATE TRIGGER products_truncated BEFORE TRUNCATE ON products FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER products_updated AFTER UPDATE ON products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_products();
CREATE TRIGGER products_version BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on products to keyward_management;
grant select (id, organization_id, entitlements) on products to keyward_validator;

create table quota_levels (
  organization_id uuid not null,
  quota text not null,
  percent integer not null,
  constraint quota_levels_pkey PRIMARY KEY (organization_id, quota),
  constraint quota_levels_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
grant delete, insert, select, update on quota_levels to keyward_management;

create unlogged table rate_limits (
  key character varying(255) not null,
  points integer not null default 0,
  expire bigint,
  constraint rate_limits_pkey PRIMARY KEY (key)
);
grant delete, insert, select, update on rate_limits to keyward_management;

create unlogged table server_run (
  id uuid not null,
  constraint server_run_pkey PRIMARY KEY (id)
);

create table sessions (
  id uuid not null,
  secret_hash bytea not null,
  organization_id uuid,
  member_id uuid,
  credential_id uuid,
  operator_seal bytea,
  method text not null,
  invited_by jsonb,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_secret_hash_key UNIQUE (secret_hash),
  constraint sessions_credential_id_fkey FOREIGN KEY (credential_id) REFERENCES credentials(id) ON DELETE CASCADE,
  constraint sessions_member_id_fkey FOREIGN KEY (member_id) REFERENCES members(id) ON DELETE CASCADE,
  constraint sessions_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint sessions_check CHECK (((member_id IS NULL) = (operator_seal IS NOT NULL))),
  constraint sessions_check1 CHECK (((member_id IS NULL) = (organization_id IS NULL))),
  constraint sessions_method_check CHECK ((method = ANY (ARRAY['INVITATION'::text, 'ACCESS_TOKEN'::text, 'PASSKEY'::text, 'OPERATOR_TOKEN'::text, 'OPENID'::text]))),
  constraint sessions_operator_seal_check CHECK ((length(operator_seal) = 32)),
  constraint sessions_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX sessions_credential ON sessions (credential_id) WHERE (credential_id IS NOT NULL);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_member ON sessions (member_id) WHERE (member_id IS NOT NULL);
CREATE INDEX sessions_organization ON sessions (organization_id) WHERE (organization_id IS NOT NULL);
grant delete, insert, select, update on sessions to keyward_management;

create table signing_keys (
  id uuid not null,
  organization_id uuid not null,
  key_id text not null,
  public_key bytea not null,
  private_key_encrypted bytea not null,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  withdrawn_at timestamptz,
  prepared_at timestamptz,
  delegations jsonb not null default '{}'::jsonb,
  delegated_at timestamptz,
  constraint signing_keys_pkey PRIMARY KEY (id),
  constraint signing_keys_organization_id_key_id_key UNIQUE (organization_id, key_id),
  constraint signing_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint signing_keys_public_key_check CHECK ((length(public_key) = 32))
);
CREATE UNIQUE INDEX signing_keys_current ON signing_keys (organization_id) WHERE (retired_at IS NULL);
CREATE UNIQUE INDEX signing_keys_prepared ON signing_keys (organization_id) WHERE ((prepared_at IS NOT NULL) AND (withdrawn_at IS NULL));
CREATE TRIGGER signing_keys_count_added AFTER INSERT ON signing_keys REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER signing_keys_count_deleted AFTER DELETE ON signing_keys REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER signing_keys_count_truncated AFTER TRUNCATE ON signing_keys FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER signing_keys_deleted AFTER DELETE ON signing_keys REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_signing_keys();
CREATE TRIGGER signing_keys_inserted AFTER INSERT ON signing_keys REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_signing_keys();
CREATE TRIGGER signing_keys_truncated BEFORE TRUNCATE ON signing_keys FOR EACH STATEMENT EXECUTE FUNCTION log_truncate();
CREATE TRIGGER signing_keys_updated AFTER UPDATE ON signing_keys REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_changes_of_signing_keys();
grant delete, insert, select, update on signing_keys to keyward_management;
grant select (id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at, prepared_at, delegations) on signing_keys to keyward_validator;

create table slot_releases (
  license_id uuid not null,
  at timestamptz not null default now(),
  constraint slot_releases_license_id_fkey FOREIGN KEY (license_id) REFERENCES license_slots(license_id) ON DELETE CASCADE
);
CREATE INDEX slot_releases_license ON slot_releases (license_id, at);
grant select on slot_releases to keyward_management;

create table used_licenses (
  license_id uuid not null,
  constraint used_licenses_pkey PRIMARY KEY (license_id),
  constraint used_licenses_license_id_fkey FOREIGN KEY (license_id) REFERENCES licenses(id) ON DELETE CASCADE
);
grant delete, insert, select on used_licenses to keyward_management;

create table validators (
  id uuid not null,
  name text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  applied text,
  ready boolean not null default false,
  details jsonb not null default '{}'::jsonb,
  landmark text,
  constraint validators_pkey PRIMARY KEY (id)
);
grant select on validators to keyward_management;

create table webhook_attempts (
  delivery_id uuid not null,
  number integer not null,
  at timestamptz not null,
  duration_ms integer not null,
  status integer,
  error text,
  response text,
  constraint webhook_attempts_pkey PRIMARY KEY (delivery_id, number),
  constraint webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(id) ON DELETE CASCADE
);
grant delete, insert, select, update on webhook_attempts to keyward_management;

create table webhook_deliveries (
  id uuid not null,
  organization_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  event_type text not null,
  cause text not null,
  status text not null default 'PENDING'::text,
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  worker uuid,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_cause_check CHECK ((cause = ANY (ARRAY['EVENT'::text, 'RESEND'::text, 'REPLAY'::text, 'TEST'::text]))),
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'SUCCEEDED'::text, 'FAILED'::text])))
);
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (worker) WHERE (worker IS NOT NULL);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE ((status = 'PENDING'::text) AND (worker IS NULL));
CREATE INDEX webhook_deliveries_listing ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_organization ON webhook_deliveries (organization_id);
grant delete, insert, select, update on webhook_deliveries to keyward_management;

create table webhook_endpoints (
  id uuid not null,
  organization_id uuid not null,
  url text not null,
  types text[] not null,
  description text,
  enabled boolean not null default true,
  disabled_reason text,
  failing_since timestamptz,
  secret_encrypted bytea not null,
  previous_encrypted bytea,
  previous_until timestamptz,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint webhook_endpoints_pkey PRIMARY KEY (id),
  constraint webhook_endpoints_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint webhook_endpoints_check CHECK (((previous_encrypted IS NULL) = (previous_until IS NULL))),
  constraint webhook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['GONE'::text, 'FAILING'::text])))
);
CREATE INDEX webhook_endpoints_listing ON webhook_endpoints (organization_id, id);
CREATE TRIGGER webhook_endpoints_count_added AFTER INSERT ON webhook_endpoints REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER webhook_endpoints_count_deleted AFTER DELETE ON webhook_endpoints REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_usage();
CREATE TRIGGER webhook_endpoints_count_truncated AFTER TRUNCATE ON webhook_endpoints FOR EACH STATEMENT EXECUTE FUNCTION recount_after_truncate();
CREATE TRIGGER webhook_endpoints_version BEFORE UPDATE OF url, types, description, enabled, disabled_reason ON webhook_endpoints FOR EACH ROW EXECUTE FUNCTION next_version();
grant delete, insert, select, update on webhook_endpoints to keyward_management;

create table webhook_workers (
  id uuid not null,
  seen_at timestamptz not null default now(),
  constraint webhook_workers_pkey PRIMARY KEY (id)
);
grant delete, insert, select, update on webhook_workers to keyward_management;

function add_bytes(organizations uuid[], amounts integer[], counted_day date) returns void;
function add_license_slots() returns trigger;
function add_rule_counters() returns trigger;
function add_usage(organizations uuid[], quotas text[], sign integer) returns void;
function are_entitlements(members jsonb, with_null boolean) returns boolean to keyward_management;
function change_leases() returns trigger;
function change_log_identity() returns text;
function changes_after(since pg_snapshot, without uuid[], at_most bigint) returns TABLE(entity "char", id uuid, machine_id bytea, organization_id uuid) to keyward_validator;
function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean, features text[]) returns TABLE(outcome text, used integer, max integer, xid text, ends_at double precision, lease integer) to keyward_management to keyward_validator;
function count_bytes() returns trigger;
function count_changed_bytes() returns trigger;
function count_credentials() returns trigger;
function count_usage() returns trigger;
function customer_text(email text, name text, external_id text) returns text to keyward_management;
function daily_entry(digest text, OUT at timestamp with time zone, OUT id uuid) returns record;
function drop_old_partitions(activity_days integer, analytics_days integer) returns SETOF text to keyward_management;
function ensure_partition(parent text, at timestamp with time zone) returns void to keyward_management;
function fold_usage(organization uuid, folded text) returns void to keyward_management;
function forget_change_log() returns void;
function forget_validator(validator uuid) returns void to keyward_validator;
function keep_product_of_key() returns trigger;
function landmark_of(validator uuid) returns text to keyward_validator;
function lock_license_slots() returns trigger;
function log_changes_of(logged_table text, letter text, columns text, rows text DEFAULT 'true'::text) returns void;
function log_changes_of_access_rules() returns trigger;
function log_changes_of_credentials() returns trigger;
function log_changes_of_customers() returns trigger;
function log_changes_of_licenses() returns trigger;
function log_changes_of_organizations() returns trigger;
function log_changes_of_products() returns trigger;
function log_changes_of_signing_keys() returns trigger;
function log_machines() returns trigger;
function log_place() returns text;
function log_truncate() returns trigger;
function machine_quota(plan text, quotas jsonb) returns bigint;
function members_unbind_openid() returns trigger;
function new_id() returns uuid to keyward_management;
function next_version() returns trigger;
function note_activity() returns trigger;
function note_alert() returns trigger;
function note_deleted_organizations() returns trigger;
function note_machines() returns trigger;
function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb) returns void to keyward_validator;
function notify_validators() returns void;
function open_change_log_with(features text[]) returns text to keyward_validator;
function partition_unit(parent text) returns text;
function prune_change_log(keep interval, most integer) returns bigint to keyward_validator;
function quota_of_credential(kind text) returns text;
function record_activity(organization uuid, licenses_changed uuid[], kind text, machine bytea, acting jsonb) returns void to keyward_management;
function record_file_issued(organization uuid, license uuid, machine bytea, acting jsonb) returns void to keyward_management;
function record_release_limits(license_ids uuid[], machine_ids bytea[]) returns void;
function recount_after_truncate() returns trigger;
function recount_usage() returns void;
function refuse_update() returns trigger;
function release_slots(license_ids uuid[], machine_ids bytea[]) returns TABLE(outcome text, used integer, xid text) to keyward_validator;
function release_slots(license_ids uuid[], machine_ids bytea[], released_by jsonb) returns TABLE(outcome text, used integer, xid text) to keyward_management;
function renew_leases(leased uuid[], license_ids uuid[], machine_ids bytea[]) returns void;
function require_features(features text[]) returns void;
function require_own_table(schema_name name) returns void;
function revoke_keys_of_products() returns trigger;
function sane_time(at timestamp with time zone) returns timestamp with time zone;
function set_organization_of_machine() returns trigger;
function snap_covers(a pg_snapshot, b pg_snapshot) returns boolean to keyward_management to keyward_validator;
function start_terms(locked uuid[], license_ids uuid[], machine_ids bytea[]) returns void;
function term_end(days integer) returns timestamp with time zone;
function utc_day() returns date to keyward_management;
function version_sets() returns trigger;
function void_change_log() returns void;
function write_blacklisted(license_ids uuid[], codes text[], counts integer[], firsts double precision[], lasts double precision[]) returns void;
function write_check_activity(minutes double precision[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[], firsts double precision[], lasts double precision[]) returns void;
function write_check_counts(rows jsonb) returns void;
function write_hostnames(rows jsonb) returns void;
function write_key_uses(rows jsonb) returns void;
function write_machines_seen(license_ids uuid[], machine_ids bytea[], moments double precision[], seen boolean[]) returns void;
function write_overuse_counts(rows jsonb) returns void;
function write_rule_counts(rows jsonb) returns void;
function write_usage(validator uuid, flush bigint, rules jsonb, checks jsonb, overuse jsonb, key_uses jsonb, hostnames jsonb, minutes double precision[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[], firsts double precision[], lasts double precision[], seen boolean[]) returns boolean to keyward_validator;
