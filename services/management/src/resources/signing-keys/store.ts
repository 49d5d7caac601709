/**
 * An organization's signing keys: exactly one is current, older ones still vouch for the files that they signed, until withdrawn.
 * Changing the master key: start with the new one as MASTER_KEY and the old one as MASTER_KEY_PREVIOUS; every key is sealed anew.
 */
import type { signingKey } from '@keyward/contract'
import { type Database, uuidv7 } from '@keyward/database'
import { generateKeyPair, publicKeyToSpki } from '@keyward/license-file'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { audit, type Change } from '../../audit/writer.ts'
import type { Db } from '../../http/context.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { notFound, Refusal } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'

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

export async function listSigningKeys(db: Db, organizationId: string, query: PageQuery) {
  const list = { name: 'signing-keys', organizationId }
  const select = db.selectFrom('signingKeys').selectAll().where('organizationId', '=', organizationId)
  return readPage(list, query, select, show)
}

/** Makes a key pair and makes it current. There must be no current one. */
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

export async function rotateSigningKey(change: Change, keyring: Keyring): Promise<SigningKey> {
  const { db, organizationId } = change
  // Two rotations at once would otherwise both retire one key and both make a current one.
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
  await db
    .updateTable('signingKeys')
    .set({ retiredAt: new Date() })
    .where('organizationId', '=', organizationId)
    .where('retiredAt', 'is', null)
    .execute()
  const made = await makeSigningKey(db, keyring, organizationId)
  await audit(change, {
    action: 'signing_key.rotated',
    resourceType: 'signing_key',
    resourceId: made.id,
    changes: { keyId: made.keyId },
  })
  return made
}

/** From now on no file of this key is trusted. The current key cannot be withdrawn: the next file would be void at once. */
export async function withdrawSigningKey(change: Change, id: string): Promise<SigningKey> {
  const { db, organizationId } = change
  const row = await db
    .selectFrom('signingKeys')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw notFound('signing key')
  if (row.retiredAt === null) throw new Refusal('SIGNING_KEY_CURRENT')
  if (row.withdrawnAt !== null) return show(row)
  const changed = await db
    .updateTable('signingKeys')
    .set({ withdrawnAt: new Date() })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(change, { action: 'signing_key.withdrawn', resourceType: 'signing_key', resourceId: id })
  return show(changed)
}

export interface Signer {
  keyId: string
  privateKey: Uint8Array
}

/** The key that signs new files. While the master key is being changed, a process with the old one alone answers UNAVAILABLE. */
export async function currentSigner(db: Db, keyring: Keyring, organizationId: string): Promise<Signer> {
  const row = await db
    .selectFrom('signingKeys')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('retiredAt', 'is', null)
    .executeTakeFirstOrThrow()
  if (!keyring.canOpen(row.masterKeyId))
    throw new Refusal('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
  return { keyId: row.keyId, privateKey: keyring.open(row) }
}

const resealBatch = 500

/**
 * Seals under the current master key what is sealed under the previous one; how many it were. Several processes may do it at
 * once. Throws when a key is sealed under a master key that is not known here.
 */
export async function resealSigningKeys(db: Db, keyring: Keyring): Promise<number> {
  for (let done = 0; ;) {
    const count = await db.transaction().execute(async (transaction) => {
      const rows = await transaction
        .selectFrom('signingKeys')
        .select(['id', 'organizationId', 'keyId', 'masterKeyId', 'privateKeyEncrypted'])
        .where('masterKeyId', '<>', keyring.currentId)
        .orderBy('id')
        .limit(resealBatch)
        .forUpdate()
        .execute()
      for (const row of rows)
        await transaction
          .updateTable('signingKeys')
          .set({
            privateKeyEncrypted: keyring.seal(row.organizationId, row.keyId, keyring.open(row)),
            masterKeyId: keyring.currentId,
          })
          .where('id', '=', row.id)
          .execute()
      return rows.length
    })
    done += count
    if (count < resealBatch) return done
  }
}
