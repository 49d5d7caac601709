// Machine slots: claims of many machines in one statement, and releases. Who may have a slot is decided in the database
// alone, under the lock of the license's row in `license_slots`, so that the limit holds across all validators.

import { type Kysely, sql } from 'kysely'
import type pg from 'pg'

import type { Id } from './feed/changes.ts'
import { toHex } from './ids.ts'
import type { Database } from './schema.ts'

export interface Claim {
  readonly licenseId: Id
  /** 1 to 512 bytes, as the app sent them. */
  readonly machineId: Uint8Array
  readonly hostname: string | null
}

const OUTCOMES = [
  'granted', // the machine has a slot from now on
  'known', // it had one before
  'limit', // none is free
  'recorded', // the license has no limit; the machine is on record from now on
  'capped', // the license has no limit, but so many machines are on record that no more are kept; it was counted
  'suspended',
  'revoked',
  'no_license',
  'busy', // somebody holds the license's row; claim for it alone, with `patient`
] as const
export type ClaimOutcome = (typeof OUTCOMES)[number]

export interface ClaimAnswer {
  readonly outcome: ClaimOutcome
  /** Slots taken after the call; null when busy or without a license. */
  readonly used: number | null
  /** Null without a limit, when busy, or without a license. */
  readonly max: number | null
  /** The transaction, as `pg_visible_in_snapshot` takes it: a feed that has seen it has seen this claim. */
  readonly xid: string
}

/**
 * Claims slots for many machines in one statement; answers in the order of the claims. It never waits for a row that
 * somebody holds: those licenses are answered `busy`. With `patient` it waits half a second at most and then rejects with
 * code 55P03. A repeat after an answer that was lost says `known`. Give the pool a statement time-out.
 */
export async function claimSlots(
  client: Pick<pg.ClientBase, 'query'>,
  claims: readonly Claim[],
  options: { readonly patient?: boolean } = {},
): Promise<ClaimAnswer[]> {
  if (claims.length === 0) return []
  const values = [
    claims.map((claim) => toHex(claim.licenseId)),
    claims.map((claim) => claim.machineId),
    claims.map((claim) => claim.hostname?.replaceAll('\0', '') ?? null), // Postgres keeps no NUL in a text
    options.patient ?? false,
  ]
  const { rows } = await client.query<{ outcome: string; used: number | null; max: number | null; xid: string }>({
    name: 'keyward-claim-slots',
    text: 'select outcome, used, max, xid from claim_slots($1::uuid[], $2::bytea[], $3::text[], $4)',
    values,
  })
  return rows.map(({ outcome, used, max, xid }) => ({ outcome: toOutcome(outcome), used, max, xid }))
}

function toOutcome(said: string): ClaimOutcome {
  const outcome = OUTCOMES.find((candidate) => candidate === said)
  if (outcome === undefined) throw new Error(`A claim was answered with ${said}, which nobody knows`)
  return outcome
}

/**
 * Puts machines of licenses without a limit on record, at most 10,000 a license. The same as claiming, since a limit may
 * have been set meanwhile; the answers then say so.
 */
export async function recordMachines(
  client: Pick<pg.ClientBase, 'query'>,
  machines: readonly Claim[],
): Promise<ClaimAnswer[]> {
  return await claimSlots(client, machines)
}

export interface ReleaseAnswer {
  /** False when the machine held no slot, also when a repeat finds it released. */
  readonly released: boolean
  readonly used: number
  /** Null without a limit, or without a license. */
  readonly max: number | null
  readonly xid: string
}

/** Releases a machine's slot. Waits for a held row half a second at most, then rejects with code 55P03. */
export async function releaseSlot(
  client: Pick<pg.ClientBase, 'query'>,
  licenseId: Id,
  machineId: Uint8Array,
  actor: object | null = null,
): Promise<ReleaseAnswer> {
  const { rows } = await client.query<ReleaseAnswer>({
    name: 'keyward-release-slot',
    text: 'select released, used, max, xid from release_slot($1::uuid, $2::bytea, $3::jsonb)',
    values: [toHex(licenseId), machineId, actor === null ? null : JSON.stringify(actor)],
  })
  const answer = rows[0]
  if (answer === undefined) throw new Error('A release was not answered')
  return answer
}

/** Removes a machine by the id of its record, with its slot, in the caller's transaction. False when there is none. */
export async function removeMachine(
  transaction: Kysely<Database>,
  machine: { readonly licenseId: string; readonly id: string; readonly actor: object | null },
): Promise<boolean> {
  const actor = machine.actor === null ? null : JSON.stringify(machine.actor)
  const { rows } = await sql<{ released: boolean }>`
    select r.released from machines m, release_slot(m.license_id, m.machine_id, ${actor}::jsonb) r
    where m.license_id = ${machine.licenseId}::uuid and m.id = ${machine.id}::uuid`.execute(transaction)
  return rows[0]?.released ?? false
}
