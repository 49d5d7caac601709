/**
 * Names the parameterized statements of a pool, so that each connection sends their text once, and Postgres parses a statement once per
 * connection and can reuse its plan.
 */

import type pg from 'pg'

import { replaceQuery } from './client-query.ts'

/** The maximum number of names in a pool. Each connection stores the texts and plans of the statements that it has executed. */
const MAX_NAMES = 250
const MAX_TEXT = 8_000
/** Matches lists of parameters whose length varies, so that one statement would have many texts. */
const LIST = / in \(\$\d+(?:, \$\d+)+\)|\), \(\$\d+/
/** Matches a result with all columns. Postgres rejects such a prepared statement after a migration has added a column. */
const ALL_COLUMNS = /(?:\bselect|\breturning|,)\s+(?:"?\w+"?\.)?\*/i

export class StatementNames {
  readonly #names = new Map<string, string>()

  /** Makes the connection send each suitable statement with a name. */
  use(client: pg.ClientBase): void {
    replaceQuery(client, (query) => (text, values, ...rest) => {
      const name =
        typeof text === 'string' && Array.isArray(values) && values.length > 0 ? this.nameOf(text) : undefined
      return name === undefined ? query(text, values, ...rest) : query({ name, text, values }, ...rest)
    })
  }

  /** Returns the name of a statement, or undefined if the statement stays unnamed. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text)
    if (known !== undefined) return known
    if (this.#names.size >= MAX_NAMES || text.length > MAX_TEXT || LIST.test(text) || ALL_COLUMNS.test(text))
      return undefined
    const name = `keyward_${this.#names.size}`
    this.#names.set(text, name)
    return name
  }
}
