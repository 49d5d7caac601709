/** Seals the signing secrets of connections under the master key and opens them. A sealed secret is bound to its connection. */

import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'

import type { Db } from '../../context.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { resealRows } from '../../keyring/reseal.ts'

export type ConnectionRow = Selectable<Database['commerceConnections']>
type Place = Pick<ConnectionRow, 'id' | 'organizationId'>

/** Returns the columns of a secret. */
export function sealed(keyring: Keyring, { id, organizationId }: Place, secret: string) {
  const secretEncrypted = keyring.seal(organizationId, `commerce ${id}`, Buffer.from(secret))
  return { secretEncrypted, masterKeyId: keyring.currentId }
}

export function secretOf(
  keyring: Keyring,
  { id, organizationId, masterKeyId, secretEncrypted }: ConnectionRow,
): string {
  const keyId = `commerce ${id}`
  return keyring.open({ organizationId, keyId, masterKeyId, privateKeyEncrypted: secretEncrypted }).toString()
}

/** Seals the secrets that are sealed under another master key under the current one. Returns the number of connections. */
export function resealConnectionSecrets(db: Db, keyring: Keyring): Promise<number> {
  return resealRows(db, async (transaction, maxRows) => {
    const rows = await transaction
      .selectFrom('commerceConnections')
      .selectAll()
      .where('masterKeyId', '<>', keyring.currentId)
      .orderBy('id')
      .limit(maxRows)
      .forUpdate()
      .execute()
    for (const row of rows)
      await transaction
        .updateTable('commerceConnections')
        .set(sealed(keyring, row, secretOf(keyring, row)))
        .where('organizationId', '=', row.organizationId)
        .where('id', '=', row.id)
        .execute()
    return rows.length
  })
}
