/**
 * The signing keys of an organization (docs/api.md#f5): exactly one is current. Files of older keys stay valid until their key is
 * withdrawn. To change the master key, start with the new one as MASTER_KEY and the old one as MASTER_KEY_PREVIOUS: every signing key is
 * sealed again.
 */

import type { signingKey } from '@keyward/contract'
import { type Database, uuidv7 } from '@keyward/database'
import { generateKeyPair, publicKeyToSpki } from '@keyward/license-file'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import { lockRow, type OwnedRows, updateRow } from '../../crud/rows.ts'
import type { Db, ReadContext, WriteContext } from '../../http/context.ts'
import { ApiError } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'

type SigningKey = z.output<typeof signingKey>

function show(row: Selectable<Database['signingKeys']>): SigningKey {
  return {
    id: row.id,
    keyId: row.keyId,
    algorithm: 'Ed25519',
    publicKey: publicKeyToSpki(row.publicKey),
    createdAt: row.createdAt.toISOString(),
    retiredAt: row.retiredAt?.toISOString() ?? null,
    withdrawnAt: row.withdrawnAt?.toISOString() ?? null,
  }
}

export const signingKeyRows: OwnedRows<'signingKeys', SigningKey> = {
  table: 'signingKeys',
  type: 'signing_key',
  show,
}

/** Creates a key pair as the current one. The organization must have no current key. */
export async function makeSigningKey(db: Db, keyring: Keyring, organizationId: string): Promise<SigningKey> {
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
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return show(row)
}

export async function rotateSigningKey(context: WriteContext, keyring: Keyring): Promise<SigningKey> {
  const { db, organizationId } = context
  // Without this lock, two concurrent rotations would each create a current key.
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
  await requireWithinQuota(context, 'signingKeys')
  await db
    .updateTable('signingKeys')
    .set({ retiredAt: new Date() })
    .where('organizationId', '=', organizationId)
    .where('retiredAt', 'is', null)
    .execute()
  const created = await makeSigningKey(db, keyring, organizationId)
  await audit(context, {
    action: 'signing_key.rotated',
    resourceType: 'signing_key',
    resourceId: created.id,
    changes: { keyId: created.keyId },
  })
  return created
}

/** Removes a key from the public keys, so that clients reject its files. Throws SIGNING_KEY_CURRENT for the current key. */
export async function withdrawSigningKey(context: WriteContext, id: string): Promise<SigningKey> {
  const row = await lockRow(signingKeyRows, context, id)
  if (row.retiredAt === null) throw new ApiError('SIGNING_KEY_CURRENT')
  if (row.withdrawnAt !== null) return show(row)
  const changed = await updateRow(signingKeyRows, context, id, { withdrawnAt: new Date() })
  await audit(context, { action: 'signing_key.withdrawn', resourceType: 'signing_key', resourceId: id })
  return show(changed)
}

export interface Signer {
  keyId: string
  privateKey: Uint8Array
}

/** Returns the key that signs new files. Throws UNAVAILABLE in a process that does not have the master key yet that seals it. */
export async function currentSigner({ db, organizationId }: ReadContext, keyring: Keyring): Promise<Signer> {
  const row = await db
    .selectFrom('signingKeys')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('retiredAt', 'is', null)
    .executeTakeFirstOrThrow()
  if (!keyring.canOpen(row.masterKeyId))
    throw new ApiError('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
  return { keyId: row.keyId, privateKey: keyring.open(row) }
}

const RESEAL_BATCH = 500

/**
 * Seals under the current master key every signing key that is sealed under the previous one, and returns their number. Several
 * processes may do so at once. Throws for a key that is sealed under any other master key.
 */
export async function resealSigningKeys(db: Db, keyring: Keyring): Promise<number> {
  for (let done = 0; ;) {
    const count = await db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('signingKeys')
        .select(['id', 'organizationId', 'keyId', 'masterKeyId', 'privateKeyEncrypted'])
        .where('masterKeyId', '<>', keyring.currentId)
        .orderBy('id')
        .limit(RESEAL_BATCH)
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
    done += count
    if (count < RESEAL_BATCH) return done
  }
}
