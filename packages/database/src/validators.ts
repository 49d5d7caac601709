// What a live validator says of itself, so that others know what it has applied.

import type pg from 'pg'

export interface ValidatorNote {
  /** A UUID, new with each start. */
  readonly id: string
  readonly name: string
  /** The snapshot of the last feed read that it has applied; null until it has loaded. */
  readonly applied: string | null
  readonly ready: boolean
  /** Anything worth showing to an operator. */
  readonly details: object
}

/** To be said at least every second, and at once when something was applied that others may wait for. */
export async function noteValidator(client: Pick<pg.ClientBase, 'query'>, note: ValidatorNote): Promise<void> {
  await client.query({
    name: 'keyward-note-validator',
    text: 'select note_validator($1::uuid, $2, $3, $4, $5::jsonb)',
    values: [note.id, note.name, note.applied, note.ready, JSON.stringify(note.details)],
  })
}

/** Says that it has stopped, so that nobody waits for it. */
export async function forgetValidator(client: Pick<pg.ClientBase, 'query'>, id: string): Promise<void> {
  await client.query('select forget_validator($1::uuid)', [id])
}
