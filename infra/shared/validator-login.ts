/**
 * The role that validators log in as: a member of the group role `keyward_validator`, which the migration creates, and of
 * nothing else.
 */

import { createPool } from '@keyward/database'

/**
 * Creates the role if it does not exist, and sets its password if one is given. Without a password, a new role can log in
 * only where Postgres authenticates it by certificate or peer. Resolves with whether the role was created.
 */
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

  /** Statements about roles take no parameters, so the server quotes the values with `format`. */
  async function run(template: string, ...values: string[]): Promise<void> {
    const { rows } = await pool.query<{ statement: string }>('select format($1, variadic $2::text[]) as statement', [
      template,
      values,
    ])
    await pool.query(rows[0]?.statement ?? '')
  }
}
