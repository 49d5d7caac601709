/**
 * Writes the events about changes that validators made (docs/api.md#w1). Triggers write these changes to `occurrences`. One process works
 * at a time. The occurrences are deleted in the transaction that writes their events, so each event is written exactly once.
 */

import type { License } from '@keyward/contract'
import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../context.ts'
import { type OwnedEvent, writeEvents } from '../events/writer.ts'
import { licensesById } from './licenses.ts'

/** The number of changes after which a batch takes no further occurrence. */
const BATCH = 500
const kinds = z.enum([
  'MACHINE_ACTIVATED',
  'MACHINE_RELEASED',
  'LEASE_ENDED',
  'MACHINE_DELETED',
  'TERM_STARTED',
  'LIMIT_EXCEEDED',
])
const ACTOR = { type: 'SYSTEM' } as const

/** A change of a license or of one machine. */
interface Occurrence {
  /** The id of the event. */
  id: string
  xid: string
  kind: z.output<typeof kinds>
  licenseId: string
  machineId: Buffer | null
  details: unknown
  /** The id of the machine's row. This column and the next four are null for a change of a license. */
  machine: string | null
  hostname: string | null
  firstSeen: Date | null
  lastSeen: Date | null
  leaseEnd: Date | null
}

const time = z.string().transform((value) => new Date(value).toISOString())
const alertDetails = z.object({ id: z.string(), count: z.number(), firstAt: time, lastAt: time })

/**
 * Deletes the oldest occurrences and all others of the same transactions, and returns the changes that they describe. A release and the
 * deletion of its machine belong to one transaction. The event of an occurrence's first machine gets the id of the occurrence. The events
 * of its other machines get ids with the same time.
 */
async function take(db: Db): Promise<Occurrence[]> {
  const { rows } = await sql<Occurrence & { kind: string }>`
    with oldest as (
      select id, xid, changes from occurrences order by id limit ${BATCH}
    ), taken as (
      delete from occurrences where xid in (
        select xid from (select xid, sum(changes) over (order by id) - changes as earlier from oldest) o where earlier < ${BATCH})
      returning *
    )
    select case when coalesce(m.n, 1) = 1 then t.id else (left(t.id::text, 19) || right(gen_random_uuid()::text, 17))::uuid end as id,
      t.xid::text as xid, t.kind, coalesce(m.license_id, t.license_id) as license_id,
      coalesce(m.machine_id, t.machine_id) as machine_id, t.details, m.id as machine, m.hostname, m.first_seen, m.last_seen, m.lease_end
    from taken t left join lateral unnest(
      t.ids, t.license_ids, t.machine_ids, t.hostnames, t.first_seen, t.last_seen, t.lease_ends
    ) with ordinality as m (id, license_id, machine_id, hostname, first_seen, last_seen, lease_end, n) on true`.execute(
    db,
  )
  return rows
    .flatMap((row) => {
      const kind = kinds.safeParse(row.kind)
      return kind.success ? [{ ...row, kind: kind.data }] : []
    })
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
}

/** Returns the licenses that are used for the first time, and stores them as used. */
async function firstUsed(db: Db, licenseIds: readonly string[]): Promise<Set<string>> {
  if (licenseIds.length === 0) return new Set()
  const { rows } = await sql<{ licenseId: string }>`
    insert into used_licenses (license_id)
    select id from licenses where id = any (${licenseIds}::uuid[]) order by id for key share
    on conflict do nothing returning license_id`.execute(db)
  return new Set(rows.map(({ licenseId }) => licenseId))
}

const machineKey = ({ xid, licenseId, machineId }: Occurrence) =>
  `${xid} ${licenseId} ${machineId?.toString('hex') ?? ''}`

/** Returns the machine of a change in the representation of the API, or null for a change of a license. */
function machineOf({ machine: id, machineId, hostname, firstSeen, lastSeen, leaseEnd }: Occurrence) {
  if (id === null || machineId === null || firstSeen === null || lastSeen === null) return null
  return {
    id,
    machineId: machineId.toString('utf8'),
    hostname,
    firstSeenAt: firstSeen.toISOString(),
    lastSeenAt: lastSeen.toISOString(),
    leaseEndsAt: leaseEnd?.toISOString() ?? null,
  }
}

/** The rows from which the events of one batch are built. */
interface Batch {
  licenses: ReadonlyMap<string, { organizationId: string; license: License }>
  /** The deleted machines, by transaction, license and machine id. */
  deleted: ReadonlyMap<string, Occurrence>
  /** The licenses that are used for the first time. A license is removed from the set when its event has been built. */
  firstUsed: Set<string>
}

function eventsOf(occurrence: Occurrence, batch: Batch): OwnedEvent[] {
  const { id, kind, licenseId } = occurrence
  const owner = batch.licenses.get(licenseId)
  // The license has been deleted, and another event reports its deletion.
  if (owner === undefined) return []
  const { organizationId, license } = owner
  const common = { id, organizationId, actor: ACTOR }
  switch (kind) {
    case 'MACHINE_ACTIVATED': {
      const resource = machineOf(occurrence)
      const used: OwnedEvent[] = batch.firstUsed.delete(licenseId)
        ? [{ type: 'license.first_used', resource: license, organizationId, actor: ACTOR }]
        : []
      return resource === null
        ? used
        : [{ ...common, type: 'machine.activated', resource, more: { licenseId } }, ...used]
    }
    case 'MACHINE_RELEASED':
    case 'LEASE_ENDED': {
      const row = batch.deleted.get(machineKey(occurrence))
      const resource = row && machineOf(row)
      const reason = kind === 'LEASE_ENDED' ? 'LEASE_ENDED' : 'APP'
      return resource ? [{ ...common, type: 'machine.released', resource, more: { licenseId, reason } }] : []
    }
    case 'TERM_STARTED':
      return [{ ...common, type: 'license.started', resource: license }]
    case 'LIMIT_EXCEEDED':
      return [
        {
          ...common,
          type: 'license.limit_exceeded',
          resource: license,
          more: { alert: alertDetails.parse(occurrence.details) },
        },
      ]
    case 'MACHINE_DELETED':
      return []
    default:
      return kind satisfies never
  }
}

/** Writes the events of one batch in the given transaction. Returns the number of occurrences. */
export async function writeOccurrences(db: Db): Promise<number> {
  const taken = await take(db)
  if (taken.length === 0) return 0
  const activated = taken.filter(({ kind }) => kind === 'MACHINE_ACTIVATED').map(({ licenseId }) => licenseId)
  const batch = {
    firstUsed: await firstUsed(db, [...new Set(activated)]),
    licenses: await licensesById(db, [...new Set(taken.map(({ licenseId }) => licenseId))]),
    deleted: new Map(taken.filter(({ kind }) => kind === 'MACHINE_DELETED').map((row) => [machineKey(row), row])),
  }
  // The machines of one import are one occurrence, so there may be more changes than BATCH.
  const events = taken.flatMap((occurrence) => eventsOf(occurrence, batch))
  for (let at = 0; at < events.length; at += BATCH) await writeEvents(db, events.slice(at, at + BATCH))
  return taken.length
}
