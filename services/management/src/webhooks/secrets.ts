/**
 * Seals the secrets of endpoints under the master key and opens them. A sealed secret is bound to its endpoint. For 24 hours after a
 * rotation, deliveries are also signed with the previous secret.
 */

import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'

import type { Db } from '../context.ts'
import type { Keyring } from '../keyring/keyring.ts'
import { resealRows } from '../keyring/reseal.ts'

export type EndpointRow = Selectable<Database['webhookEndpoints']>
type Sealed = Pick<
  EndpointRow,
  'id' | 'organizationId' | 'secretEncrypted' | 'previousEncrypted' | 'previousUntil' | 'masterKeyId'
>

function boundTo(id: string): string {
  return `webhook ${id}`
}

export function sealSecret(
  keyring: Keyring,
  { id, organizationId }: Pick<Sealed, 'id' | 'organizationId'>,
  secret: Uint8Array,
): Buffer {
  return keyring.seal(organizationId, boundTo(id), secret)
}

function open(keyring: Keyring, { id, organizationId, masterKeyId }: Sealed, sealed: Uint8Array): Buffer {
  return keyring.open({ organizationId, keyId: boundTo(id), masterKeyId, privateKeyEncrypted: sealed })
}

/** Returns the secrets with which a delivery is signed at `now`, the current one first. */
export function openSecrets(keyring: Keyring, row: Sealed, now = new Date()): Buffer[] {
  const { previousEncrypted: previous, previousUntil } = row
  const isPreviousUsed = previous !== null && previousUntil !== null && previousUntil > now
  return [open(keyring, row, row.secretEncrypted), ...(isPreviousUsed ? [open(keyring, row, previous)] : [])]
}

/** Opens the secrets that are sealed under another master key, and seals them under the current one. Returns the number of endpoints. */
export async function resealWebhookSecrets(db: Db, keyring: Keyring): Promise<number> {
  return resealRows(db, async (transaction, maxRows) => {
    const rows = await transaction
      .selectFrom('webhookEndpoints')
      .selectAll()
      .where('masterKeyId', '<>', keyring.currentId)
      .orderBy('id')
      .limit(maxRows)
      .forUpdate()
      .execute()
    for (const row of rows) {
      const again = (sealed: Uint8Array) => sealSecret(keyring, row, open(keyring, row, sealed))
      await transaction
        .updateTable('webhookEndpoints')
        .set({
          secretEncrypted: again(row.secretEncrypted),
          previousEncrypted: row.previousEncrypted && again(row.previousEncrypted),
          masterKeyId: keyring.currentId,
        })
        .where('organizationId', '=', row.organizationId)
        .where('id', '=', row.id)
        .execute()
    }
    return rows.length
  })
}
