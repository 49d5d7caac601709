/**
 * A login for validators: a member of the group role `keyward_validator`, which the migration makes, and nothing else. Made
 * when it is missing; a password that is given is set either way. Without one a new login has none, which is right where
 * Postgres lets it in by certificate or peer.
 */
import { createPool } from '@keyward/database'

/** Resolves with whether the login was made. */
export async function ensureValidatorLogin(url: string, login: string, password?: string): Promise<boolean> {
  const pool = createPool(url, { name: 'keyward start', max: 1 })
  try {
    const { rowCount } = await pool.query('select from pg_roles where rolname = $1', [login])
    if (rowCount === 0) await run('create role %I login in role keyward_validator', login)
    if (password !== undefined) await run('alter role %I password %L', login, password)
    return rowCount === 0
  } finally {
    await pool.end()
  }

  /** Statements about roles take no parameters; the server quotes the values itself. */
  async function run(template: string, ...values: string[]): Promise<void> {
    const { rows } = await pool.query<{ statement: string }>('select format($1, variadic $2::text[]) as statement', [
      template,
      values,
    ])
    await pool.query(rows[0]?.statement ?? '')
  }
}
