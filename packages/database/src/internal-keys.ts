/** The keys with which the services of one installation authenticate each other. */

import type pg from 'pg'

/** Returns the secret with which management authenticates at validators, or null if the secret was deleted. */
export async function readDecideSecret(client: Pick<pg.ClientBase, 'query'>): Promise<string | null> {
  const { rows } = await client.query<{ secret: string }>(`select secret from internal_keys where purpose = 'decide'`)
  return rows[0]?.secret ?? null
}
