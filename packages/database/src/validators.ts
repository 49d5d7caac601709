/**
 * The heartbeat of a validator. It contains the snapshot that the validator has applied, so that a request can wait until all validators
 * have applied its change.
 */

import type pg from 'pg'

export interface ValidatorNote {
  /** A UUID, new with each start. */
  readonly id: string
  readonly name: string
  /** The snapshot of the last feed read that the validator has applied, or null before the first load. */
  readonly applied: string | null
  readonly ready: boolean
  /**
   * Further fields for operators. `server` is the identity of the change log that `applied` belongs to. If it is
   * present, `applied` counts only while Postgres continues that log.
   */
  readonly details: object
}

/** Writes the heartbeat. Call it at least every second, and immediately after applying changes that others may wait for. */
export async function noteValidator(client: Pick<pg.ClientBase, 'query'>, note: ValidatorNote): Promise<void> {
  await client.query({
    name: 'keyward-note-validator',
    text: 'select note_validator($1::uuid, $2, $3, $4, $5::jsonb)',
    values: [note.id, note.name, note.applied, note.ready, JSON.stringify(note.details)],
  })
}

/** Removes the heartbeat of a validator that has stopped, so that nothing waits for it. */
export async function forgetValidator(client: Pick<pg.ClientBase, 'query'>, id: string): Promise<void> {
  await client.query('select forget_validator($1::uuid)', [id])
}
