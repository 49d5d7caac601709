// The statement of read-feed.ts. Each entity has a branch that fetches its rows by their ids; `offset 0` keeps the planner
// from turning those look-ups into a scan of a whole table when it overestimates how much has changed.

/** Moments as milliseconds; without one: Infinity. */
const ms = (column: string): string => `coalesce(floor(extract(epoch from ${column}) * 1000)::float8, 'infinity')`

const COLUMNS = {
  organization: 'null::bytea',
  idA: 'null::bytea',
  idB: 'null::bytea',
  bytes: 'null::bytea',
  textA: 'null::text',
  textB: 'null::text',
  textC: 'null::text',
  numberA: 'null::float8',
  numberB: 'null::float8',
  numberC: 'null::float8',
  flag: 'null::boolean',
}

/** One branch: the columns that the entity fills, the others null. */
function branch(letter: string, table: string, filled: Partial<typeof COLUMNS>): string {
  const columns = Object.entries({ ...COLUMNS, ...filled }).map(([name, expression]) => `${expression} as "${name}"`)
  return `select c.entity::text as entity, uuid_send(c.id) as id, t.id is not null as present, ${columns.join(', ')}
    from changed c left join lateral (select * from ${table} t where t.id = c.id offset 0) t on true
    where c.entity = '${letter}'`
}

const organization = 'uuid_send(t.organization_id)'

// Only the columns that the validator's role may read, hence the lists of columns.
const CREDENTIALS = '(select id, organization_id, secret_hash, expires_at, revoked_at from credentials)'
const SIGNING_KEYS =
  '(select id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at from signing_keys)'

const BRANCHES = [
  branch('O', 'organizations', {}),
  branch('P', 'products', { organization }),
  branch('U', 'customers', { organization }),
  branch('C', CREDENTIALS, {
    organization,
    bytes: 't.secret_hash',
    numberA: ms('t.expires_at'),
    flag: 't.revoked_at is not null',
  }),
  branch('K', SIGNING_KEYS, {
    organization,
    bytes: 't.public_key',
    textA: 't.key_id',
    numberA: ms('t.created_at'),
    numberB: ms('t.retired_at'),
    numberC: ms('t.withdrawn_at'),
  }),
  branch('L', 'licenses', {
    organization,
    idA: 'uuid_send(t.product_id)',
    idB: 'uuid_send(t.customer_id)',
    bytes: `convert_to(t.key, 'UTF8')`,
    textA: 't.status',
    numberA: ms('t.expires_at'),
    numberB: `coalesce(t.max_machines::float8, 'infinity')`,
    numberC: 'coalesce((select used from license_slots s where s.license_id = t.id), 0)::float8',
  }),
  branch('R', 'access_rules', {
    organization,
    idA: 'uuid_send(t.scope_id)',
    idB: 'uuid_send(t.customer_id)',
    bytes: 't.value',
    textA: 't.kind',
    textB: 't.type',
    textC: 't.scope',
    numberA: ms('t.expires_at'),
    flag: 't.allow_suspended_or_expired',
  }),
]

const MACHINES = `select 'M', uuid_send(c.id), true, null, null, null, c.machine_id, null, null, null,
    coalesce((select used from license_slots s where s.license_id = c.id), 0)::float8, null, null,
    exists (select from machines m where m.license_id = c.id and m.machine_id = c.machine_id)
  from changed c where c.entity = 'M'`

const HEAD = `select 'S', null, true, null, null, null, null, snapshot::text, null, null, null, null, null, behind
  from feed`

/** $1: the snapshot of the last read; $2: how many changes are fetched at most. */
export const READ_FEED = `
  with feed as materialized (
    -- A snapshot that knows more than the server does is of another history: of a copy that was put back, say.
    select pg_current_snapshot() as snapshot, not (snap_covers($1::pg_snapshot, pruned)
      and snap_covers(pg_current_snapshot(), $1::pg_snapshot)) as behind
    from feed_state
  ), changed as materialized (
    select entity, id, machine_id from changed_since($1::pg_snapshot) where (select not behind from feed)
    limit $2
  )
  ${[...BRANCHES, MACHINES, HEAD].join('\n  union all\n  ')}`
