/**
 * The heartbeat of a validator. It contains the snapshot that the validator has applied, so that a request can wait until all validators
 * have applied its change.
 */

import type pg from 'pg'

/** Further fields for management and operators. Validators of other versions may send other fields. */
export interface ValidatorDetails {
  readonly features: readonly string[]
  readonly version: string
  /** The address of the admin port. */
  readonly adminUrl: string
  /** The public key with which the validator signs responses: 32 bytes in base64url. */
  readonly answerKey: string
  /**
   * The identity of the change log that the snapshots belong to. If the field is set, the snapshots are valid only while Postgres continues
   * that log.
   */
  readonly server: string | undefined
  /**
   * A snapshot later than `applied`. All changes up to it are applied, except those of the organizations with the ids `except`. The field
   * is undefined unless a large change is being applied.
   */
  readonly others: { readonly snapshot: string; readonly except: readonly string[] } | undefined
}

export interface ValidatorNote {
  /** The id of the validator process, a UUID that changes at each start. */
  readonly id: string
  readonly name: string
  /** The snapshot of the last feed read that the validator has applied, or null before the first load. */
  readonly applied: string | null
  readonly ready: boolean
  /** `ValidatorDetails`, or the fields of another version. */
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

/**
 * Ends the connections of validators whose transaction has written something and is older than `seconds`. Such a transaction holds locks of
 * licenses, which delay their revocation. The transactions of validators take milliseconds, so only a stolen login holds one open. Returns
 * the number of ended connections. Does nothing without the permissions that a migration with KEYWARD_ADMIN_DATABASE_URL grants.
 */
export async function endStuckValidators(client: Pick<pg.ClientBase, 'query'>, seconds: number): Promise<number> {
  const { rowCount } = await client.query(
    `select pg_terminate_backend(a.pid)
     from pg_stat_activity a
     join pg_auth_members m on m.member = a.usesysid and m.roleid = 'keyward_validator'::regrole
     where a.datname = current_database() and a.backend_xid is not null and a.xact_start < now() - make_interval(secs => $1)
       and pg_has_role('pg_signal_backend', 'member')`,
    [seconds],
  )
  return rowCount ?? 0
}
