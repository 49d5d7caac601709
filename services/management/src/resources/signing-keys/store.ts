/**
 * Manages the signing keys of an organization (docs/api.md#f5). Exactly one key is current, and at most one is prepared. A prepared key has
 * `retiredAt` and `preparedAt`, and the next rotation makes it current. Files of older keys stay valid until their key is withdrawn. When
 * the service starts with a new KEYWARD_MASTER_KEY and the old one as KEYWARD_MASTER_KEY_PREVIOUS, it seals every signing key again.
 */

import type { EventType } from '@keyward/contract/management/events'
import type { signingKey } from '@keyward/contract/management/signing-keys'
import { type Database, uuidv7 } from '@keyward/database'
import { generateKeyPair, publicKeyToSpki } from '@keyward/license-file'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import type { Db, WriteContext } from '../../context.ts'
import { lockRow, type OwnedRows, updateRow } from '../../crud/owned-rows.ts'
import { ApiError } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { resealRows } from '../../keyring/reseal.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'

type SigningKey = z.output<typeof signingKey>

function show(row: Selectable<Database['signingKeys']>): SigningKey {
  return {
    id: row.id,
    keyId: row.keyId,
    algorithm: 'Ed25519',
    publicKey: publicKeyToSpki(row.publicKey),
    createdAt: row.createdAt.toISOString(),
    preparedAt: row.preparedAt?.toISOString() ?? null,
    retiredAt: row.preparedAt === null ? (row.retiredAt?.toISOString() ?? null) : null,
    withdrawnAt: row.withdrawnAt?.toISOString() ?? null,
  }
}

export const signingKeyRows: OwnedRows<'signingKeys', SigningKey> = {
  table: 'signingKeys',
  type: 'signing_key',
  show,
}

/** Creates the current or the prepared key pair, which the organization must not have yet. */
export async function makeSigningKey(
  db: Db,
  keyring: Keyring,
  organizationId: string,
  use: 'current' | 'prepared' = 'current',
): Promise<SigningKey> {
  const now = new Date()
  const { keyId, publicKey, privateKey } = generateKeyPair()
  const row = await db
    .insertInto('signingKeys')
    .values({
      id: uuidv7(),
      organizationId,
      keyId,
      publicKey,
      privateKeyEncrypted: keyring.seal(organizationId, keyId, privateKey),
      masterKeyId: keyring.currentId,
      ...(use === 'prepared' && { preparedAt: now, retiredAt: now }),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return show(row)
}

/** Serializes changes of the current and the prepared key of the organization. */
async function lockKeys({ db, organizationId }: WriteContext): Promise<void> {
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
}

async function findPrepared({ db, organizationId }: WriteContext): Promise<Selectable<Database['signingKeys']> | null> {
  const row = await db
    .selectFrom('signingKeys')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('preparedAt', 'is not', null)
    .where('withdrawnAt', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

/** Returns the prepared key, which the next rotation makes current. Creates it if there is none. */
export async function prepareSigningKey(context: WriteContext, keyring: Keyring): Promise<SigningKey> {
  await lockKeys(context)
  const existing = await findPrepared(context)
  if (existing) return show(existing)
  await requireWithinQuota(context, 'signingKeys')
  const created = await makeSigningKey(context.db, keyring, context.organizationId, 'prepared')
  await auditKey(context, 'signing_key.prepared', created)
  return created
}

/** Makes the prepared key current, or a new one if none is prepared. */
export async function rotateSigningKey(context: WriteContext, keyring: Keyring): Promise<SigningKey> {
  const { db, organizationId } = context
  await lockKeys(context)
  const prepared = await findPrepared(context)
  if (!prepared) await requireWithinQuota(context, 'signingKeys')
  await db
    .updateTable('signingKeys')
    .set({ retiredAt: new Date() })
    .where('organizationId', '=', organizationId)
    .where('retiredAt', 'is', null)
    .execute()
  const current = prepared
    ? show(await updateRow(signingKeyRows, context, prepared.id, { retiredAt: null, preparedAt: null }))
    : await makeSigningKey(db, keyring, organizationId)
  await auditKey(context, 'signing_key.rotated', current, 'signing_key.rotated')
  return current
}

async function auditKey(context: WriteContext, action: string, key: SigningKey, type?: EventType): Promise<void> {
  const event = type && { type, resource: key }
  await audit(context, {
    action,
    resourceType: 'signing_key',
    resourceId: key.id,
    changes: { keyId: key.keyId },
    event,
  })
}

/** Removes a key from the public keys, so that clients reject its files. Throws SIGNING_KEY_CURRENT for the current key. */
export async function withdrawSigningKey(context: WriteContext, id: string): Promise<SigningKey> {
  await lockKeys(context)
  const row = await lockRow(signingKeyRows, context, id)
  if (row.retiredAt === null) throw new ApiError('SIGNING_KEY_CURRENT')
  if (row.withdrawnAt !== null) return show(row)
  const changed = await updateRow(signingKeyRows, context, id, { withdrawnAt: new Date(), delegations: '{}' })
  const event = { type: 'signing_key.withdrawn', resource: show(changed) } as const
  await audit(context, { action: 'signing_key.withdrawn', resourceType: 'signing_key', resourceId: id, event })
  return show(changed)
}

/**
 * Seals the signing keys of the previous master key again, under the current one. Returns their number. Throws for a key that is sealed
 * under another master key.
 */
export async function resealSigningKeys(db: Db, keyring: Keyring): Promise<number> {
  return resealRows(db, async (transaction, maxRows) => {
    const rows = await transaction
      .selectFrom('signingKeys')
      .select(['id', 'organizationId', 'keyId', 'masterKeyId', 'privateKeyEncrypted'])
      .where('masterKeyId', '<>', keyring.currentId)
      .orderBy('id')
      .limit(maxRows)
      .forUpdate()
      .execute()
    for (const row of rows)
      await transaction
        .updateTable('signingKeys')
        .set({
          privateKeyEncrypted: keyring.seal(row.organizationId, row.keyId, keyring.open(row)),
          masterKeyId: keyring.currentId,
        })
        .where('organizationId', '=', row.organizationId)
        .where('id', '=', row.id)
        .execute()
    return rows.length
  })
}
