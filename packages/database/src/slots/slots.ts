/**
 * Claims and releases many machine slots with one statement (docs/api.md#s1, docs/api.md#s3). The database grants a slot under the lock of
 * the license's row in `license_slots`, so the limit holds across all validators.
 */

import type pg from 'pg'

import { DEFERRED, IS_DUE } from '../deferred-notification.ts'
import { FEATURES } from '../features.ts'
import type { Id } from '../feed/entities.ts'
import { toHex } from '../ids.ts'

export interface Claim {
  readonly licenseId: Id
  /** The machine id as the app sent it, at most 512 bytes. If it is empty, the claim only starts the term of a license without a limit. */
  readonly machineId: Uint8Array
  readonly hostname: string | null
}

const OUTCOMES = [
  'granted', // the machine has a new slot
  'known', // the machine already had a slot
  'limit', // no slot is free, or the organization has reached its quota of machines (docs/api.md#s10)
  'recorded', // the license has no limit; the machine has been recorded
  'capped', // the license has no limit, but the maximum number of machines of it or its organization is recorded; the machine was only counted
  'started', // the claim has no machine id, and the term of the license has started
  'suspended',
  'revoked',
  'expired', // the term of the license has started and ended
  'no_license',
  'busy', // the license's row is locked; repeat the claim for this license alone, with `patient`
] as const
export type ClaimOutcome = (typeof OUTCOMES)[number]

export interface ClaimAnswer {
  readonly outcome: ClaimOutcome
  /** The number of slots taken after the call, or null for the outcomes `busy` and `no_license`. */
  readonly used: number | null
  /** The machine limit, or null for a license without a limit and for the outcomes `busy` and `no_license`. */
  readonly max: number | null
  /** The id of the claim's transaction. A snapshot of the feed that includes the transaction also includes this claim. */
  readonly xid: string
  /**
   * The time at which the license expires, in milliseconds since 1970. The time is Infinity if the license never expires, and for the
   * outcomes `busy` and `no_license`.
   */
  readonly expiresAtMs: number
  /**
   * The number of seconds for which the machine holds its slot, from the execution of this statement on. The number is null if the machine
   * holds the slot until the release or holds no slot.
   */
  readonly leaseSeconds: number | null
}

/**
 * Claims slots for many machines in one statement and returns the outcomes in the order of the claims. Machines of licenses without a limit
 * are recorded, at most 10,000 per license (docs/api.md#s4). A claim that makes its check VALID starts the term of the license
 * (docs/api.md#l1). A claim for a locked license does not wait, and its outcome is `busy`. With `patient`, the claim waits up to half a
 * second, then rejects with SQLSTATE 55P03. Repeating a claim whose first response was lost returns `known`.
 */
export async function claimSlots(
  client: Pick<pg.ClientBase, 'query'>,
  claims: readonly Claim[],
  options: NotifyOption & { readonly patient?: boolean } = {},
): Promise<ClaimAnswer[]> {
  if (claims.length === 0) return []
  const values = [
    claims.map((claim) => toHex(claim.licenseId)),
    claims.map(({ machineId }) => (machineId.length === 0 ? null : machineId)),
    claims.map((claim) => claim.hostname?.replaceAll('\0', '') ?? null), // Postgres text cannot contain NUL
    options.patient ?? false,
    FEATURES,
  ]
  const { rows } = await client.query<ClaimRow>({
    name: 'keyward-claim-slots',
    text: deferring(
      'outcome, used, max, xid, ends_at, lease',
      'claim_slots',
      '$2::bytea[], $3::text[], $4, $5::text[]',
    ),
    values,
  })
  notifyIfDue(rows, options)
  return rows.map(({ used, max, xid, ...row }) => {
    const outcome = toOutcome(row.outcome)
    const isHeld = outcome === 'granted' || outcome === 'known'
    return { outcome, used, max, xid, expiresAtMs: row.ends_at ?? Infinity, leaseSeconds: isHeld ? row.lease : null }
  })
}

interface NotifyOption {
  /** Called when the statement has logged changes that validators must receive soon. */
  readonly notify?: () => void
}

/**
 * Returns a statement that calls a function of slots and defers its notification. The condition orders the calls: Postgres sets the mode
 * before it evaluates the arguments of the function.
 */
function deferring(columns: string, call: string, rest: string): string {
  return `select ${columns}, ${IS_DUE} as due from (select ${DEFERRED} as mode) as setting
    cross join lateral ${call}(case when mode = 'deferred' then $1::uuid[] end, ${rest})`
}

function notifyIfDue(rows: readonly { readonly due: boolean }[], { notify }: NotifyOption): void {
  if (rows[0]?.due === true) notify?.()
}

interface ClaimRow {
  readonly due: boolean
  readonly outcome: string
  readonly used: number | null
  readonly max: number | null
  readonly xid: string
  readonly ends_at: number | null
  readonly lease: number | null
}

export function toOutcome(text: string): ClaimOutcome {
  const outcome = OUTCOMES.find((candidate) => candidate === text)
  if (outcome === undefined) throw new Error(`claim_slots returned the unknown outcome ${text}`)
  return outcome
}

export interface Release {
  readonly licenseId: Id
  /** The machine id, 1 to 512 bytes, as the app sent it. It is ignored if there is a `ref`. */
  readonly machineId: Uint8Array
  /** The id of the row of the machine (docs/api.md#u2), or null. */
  readonly ref?: string | null
}

const RELEASE_OUTCOMES = [
  'released', // the machine held a slot, which is free now
  'unknown', // the machine held no slot, or apps have released as many slots of the license as its `max_releases` allows (docs/api.md#l2)
  'busy', // the license's row is locked; call again later
  'not_enabled', // the release has a `ref`, and the license has neither `max_releases` nor leases
] as const
export type ReleaseOutcome = (typeof RELEASE_OUTCOMES)[number]

export interface ReleaseAnswer {
  readonly outcome: ReleaseOutcome
  /** The number of slots taken after the release, or null unless the outcome is `released`. */
  readonly used: number | null
  /** The id of the release's transaction, or null unless the outcome is `released`. */
  readonly xid: string | null
  /** The machine id of a `ref`. It is null or absent if the release has no `ref`, or if no machine of the license has it. */
  readonly machineId?: Uint8Array | null
}

interface Referenced {
  readonly machine_id: Uint8Array | null
  readonly is_enabled: boolean
}

/**
 * Returns the machines that releases name by `ref`, in the order of the releases. A license bounds the releases of other machines by a limit,
 * or by leases, without which a file of a released machine would stay valid for long.
 */
async function readReferenced(
  client: Pick<pg.ClientBase, 'query'>,
  releases: readonly Release[],
): Promise<readonly Referenced[]> {
  const refs = releases.map(({ ref }) => ref ?? null)
  if (refs.every((ref) => ref === null)) return []
  const { rows } = await client.query<Referenced>({
    name: 'keyward-referenced-machines',
    text: `select m.machine_id, u.ref is null or l.id is null or l.max_releases is not null or l.lease_seconds is not null as is_enabled
      from unnest($1::uuid[], $2::uuid[]) with ordinality as u (license_id, ref, i)
        left join licenses l on l.id = u.license_id
        left join machines m on m.license_id = u.license_id and m.id = u.ref
      order by u.i`,
    values: [releases.map(({ licenseId }) => toHex(licenseId)), refs],
  })
  return rows
}

/** The machine id of a `ref` that names no machine. No machine has it. */
const NO_MACHINE = new Uint8Array()

/**
 * Releases the slots of many machines in one statement and returns the outcomes in the order of the releases. A release of a machine
 * without a slot writes nothing. A release for a locked license does not wait, and its outcome is `busy`.
 */
export async function releaseSlots(
  client: Pick<pg.ClientBase, 'query'>,
  releases: readonly Release[],
  options: NotifyOption = {},
): Promise<ReleaseAnswer[]> {
  if (releases.length === 0) return []
  const referenced = await readReferenced(client, releases)
  const machineIds = releases.map(({ ref, machineId }, i) => {
    if (ref === undefined || ref === null) return machineId
    const found = referenced[i]
    return found?.is_enabled === true ? (found.machine_id ?? NO_MACHINE) : NO_MACHINE
  })
  const { rows } = await client.query<{ outcome: string; used: number | null; xid: string | null; due: boolean }>({
    name: 'keyward-release-slots',
    text: deferring('outcome, used, xid', 'release_slots', '$2::bytea[]'),
    values: [releases.map(({ licenseId }) => toHex(licenseId)), machineIds],
  })
  notifyIfDue(rows, options)
  return rows.map(({ outcome, used, xid }, i) => {
    const found = referenced[i]
    if (found?.is_enabled === false) return { outcome: 'not_enabled', used: null, xid: null }
    return { outcome: toReleaseOutcome(outcome), used, xid, machineId: found?.machine_id ?? null }
  })
}

export function toReleaseOutcome(text: string): ReleaseOutcome {
  const outcome = RELEASE_OUTCOMES.find((candidate) => candidate === text)
  if (outcome === undefined) throw new Error(`release_slots returned the unknown outcome ${text}`)
  return outcome
}
