// Machine slots: claims of many machines in one statement, and releases. Who may have a slot is decided in the database
// alone, under the lock of the license's row in `license_slots`, so that the limit holds across all validators.

import type pg from 'pg'

import type { Id } from '../feed/entities.ts'
import { toHex } from '../ids.ts'

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
 * Claims slots for many machines in one statement; answers in the order of the claims. Machines of licenses without a limit
 * are put on record, at most 10,000 a license. It never waits for a row that
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

export interface ReleaseAnswer {
  /** False when the machine held no slot, also when a repeat finds it released. */
  readonly released: boolean
  readonly used: number
  /** Null without a limit, or without a license. */
  readonly max: number | null
  readonly xid: string
}

/** Releases a machine's slot, as `actor` when it was not the app. Waits for a held row half a second at most, then rejects with code 55P03. */
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
