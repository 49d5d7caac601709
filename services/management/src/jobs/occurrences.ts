/**
 * Writes the events of changes that validators made (docs/api.md#w1). Triggers write these changes to `occurrences`. One process works at a
 * time. The occurrences are deleted in the transaction that writes their events, so each event is written exactly once.
 */

import type { License } from '@keyward/contract'
import { sql } from 'kysely'
import { z } from 'zod'

import { type OwnedEvent, writeEvents } from '../events/writer.ts'
import type { Db } from '../http/context.ts'
import { licensesById } from './licenses.ts'

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

interface Occurrence {
  id: string
  xid: string
  kind: z.output<typeof kinds>
  licenseId: string
  machineId: Buffer | null
  details: unknown
}

const time = z.string().transform((value) => new Date(value).toISOString())
const machineDetails = z.object({
  id: z.string(),
  hostname: z.string().nullable(),
  firstSeenAt: time,
  lastSeenAt: time,
  leaseEndsAt: time.nullable(),
})
const alertDetails = z.object({ id: z.string(), count: z.number(), firstAt: time, lastAt: time })

/**
 * Deletes and returns the oldest occurrences, with all other occurrences of their transactions. A release and the deletion of its machine
 * belong to one transaction.
 */
async function take(db: Db): Promise<Occurrence[]> {
  const { rows } = await sql<Occurrence & { kind: string }>`
    delete from occurrences where xid in (select xid from occurrences order by id limit ${BATCH})
    returning id, xid::text as xid, kind, license_id, machine_id, details`.execute(db)
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

/** Returns the machine of an occurrence in the representation of the API, or null when it was deleted before the trigger could read it. */
function machineOf({ machineId, details }: Occurrence) {
  const parsed = machineDetails.safeParse(details)
  return parsed.success && machineId !== null ? { ...parsed.data, machineId: machineId.toString('utf8') } : null
}

/** The rows from which the events of one batch are built. */
interface Batch {
  licenses: ReadonlyMap<string, { organizationId: string; license: License }>
  /** The deleted machines, by transaction, license and machine id. */
  deleted: ReadonlyMap<string, Occurrence>
  /** The licenses that are used for the first time. A license is removed when its event has been built. */
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
  await writeEvents(
    db,
    taken.flatMap((occurrence) => eventsOf(occurrence, batch)),
  )
  return taken.length
}
