/**
 * Signs delegations (docs/api.md#g2): with each signing key of an organization, the public key of each live validator. A validator signs
 * responses with its own key, and apps verify that key by the delegation. Delegations are stored beside the signing key, and reach the
 * validators through the change feed.
 */

import { sql } from 'kysely'

import type { Db } from '../context.ts'
import { inOneProcess } from '../crud/in-one-process.ts'
import type { Keyring } from '../keyring/keyring.ts'

/** The delegation of one validator. The apps receive `signed`: the text and its signature, each in base64url, joined by a dot. */
interface Delegation {
  signed: string
  notBefore: string
  notAfter: string
}

/** The delegations of a signing key, by the public keys of the validators. */
type Delegations = Record<string, Delegation>

interface KeyRow {
  id: string
  organizationId: string
  keyId: string
  masterKeyId: string
  privateKeyEncrypted: Buffer
  delegations: Delegations
  isDue: boolean
}

const HOUR_MS = 60 * 60 * 1000
const LIFETIME_MS = 48 * HOUR_MS
/** The maximum difference between the clocks of management and a validator that does not invalidate a new delegation. */
const CLOCK_TOLERANCE_MS = 5 * 60 * 1000
/** The maximum number of validators to which a key delegates, so that its row stays small. */
const MAX_VALIDATORS = 256
/** The maximum number of signing keys in one transaction. */
const MAX_KEYS = 100
const MIN_PAUSE_MS = 1_000
/** The pause between two runs, as a multiple of the duration of a run. */
const PAUSE_FACTOR = 10

/** Returns the public keys of the live validators. A heartbeat may come from another version, so its key is checked here. */
async function readValidatorKeys(db: Db): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    select details ->> 'answerKey' as key from validators
    where seen_at > now() - interval '1 minute' and details ->> 'answerKey' ~ '^[A-Za-z0-9_-]{43}$'
    group by 1 order by max(seen_at) desc limit ${MAX_VALIDATORS}`.execute(db)
  return rows.map(({ key }) => key)
}

/**
 * Selects and locks keys that lack the delegation of a validator, or whose delegations are due for renewal. Keys under another master key
 * are skipped, because they are sealed again when the service starts.
 */
async function lockKeys(db: Db, keyring: Keyring, validators: readonly string[]): Promise<KeyRow[]> {
  const due = sql`coalesce(k.delegated_at < now() - interval '12 hours', true)`
  const { rows } = await sql<KeyRow>`
    select k.id, k.organization_id, k.key_id, k.master_key_id, k.private_key_encrypted, k.delegations, ${due} as is_due
    from signing_keys k join organizations o on o.id = k.organization_id
    where o.signs_answers and k.withdrawn_at is null and k.master_key_id = ${keyring.currentId}
      and (${due} or not k.delegations ?& ${validators}::text[])
    limit ${MAX_KEYS} for no key update of k skip locked for share of o skip locked`.execute(db)
  return rows
}

async function delegate(row: KeyRow, keyring: Keyring, validator: string, nowMs: number): Promise<Delegation> {
  const notBefore = new Date(nowMs - CLOCK_TOLERANCE_MS).toISOString()
  const notAfter = new Date(nowMs + LIFETIME_MS).toISOString()
  const text = Buffer.from(`keyward-delegation-v1 ${row.keyId} ${notBefore} ${notAfter} ${validator}`)
  const signature = await keyring.sign(row, text)
  return { signed: `${text.toString('base64url')}.${signature.toString('base64url')}`, notBefore, notAfter }
}

/**
 * Returns the delegations that the key shall have. The unexpired delegation of a stopped validator is kept, because the validator has the
 * same key after a restart from its index file.
 */
async function renew(row: KeyRow, keyring: Keyring, validators: readonly string[]): Promise<Delegations> {
  const nowMs = Date.now()
  const kept = Object.entries(row.delegations)
    .filter(([key, { notAfter }]) => Date.parse(notAfter) > nowMs && !(row.isDue && validators.includes(key)))
    .slice(-MAX_VALIDATORS)
  const delegations = Object.fromEntries(kept)
  for (const validator of validators) delegations[validator] ??= await delegate(row, keyring, validator, nowMs)
  return delegations
}

/** Renews the delegations of at most MAX_KEYS keys. Returns the number of these keys. */
async function renewSome(db: Db, keyring: Keyring, validators: readonly string[]): Promise<number> {
  const rows = await lockKeys(db, keyring, validators)
  for (const row of rows) {
    const delegations = JSON.stringify(await renew(row, keyring, validators))
    await sql`
      update signing_keys set delegations = ${delegations}::jsonb,
        delegated_at = case when ${row.isDue} then now() else delegated_at end
      where organization_id = ${row.organizationId} and id = ${row.id}`.execute(db)
  }
  return rows.length
}

/**
 * Signs all missing and due delegations. Returns the pause until the next run in milliseconds, which grows with the duration of the run, so
 * that a large installation does not spend its time on reading signing keys.
 */
export async function signDelegations(db: Db, keyring: Keyring, signal?: AbortSignal): Promise<number> {
  const startedMs = performance.now()
  const validators = await readValidatorKeys(db)
  for (let isDone = validators.length === 0; !isDone;) {
    const renewed = await inOneProcess(db, 'delegations', (transaction) => renewSome(transaction, keyring, validators))
    isDone = (renewed ?? 0) < MAX_KEYS || signal?.aborted === true
  }
  return Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (performance.now() - startedMs))
}
