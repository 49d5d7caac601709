/**
 * The difference between a row and a PATCH. A PATCH that changes nothing writes nothing: `updatedAt` stays, and there is no audit entry
 * and no change for validators.
 */

import { isDeepStrictEqual } from 'node:util'

/** Returns the given fields that differ from the row, or null when none does. An undefined field is not given. */
export function differences<Fields extends object>(row: object, given: Fields): Partial<Fields> | null {
  const changed: Partial<Fields> = {}
  let isChanged = false
  const before = new Map<string, unknown>(Object.entries(row))
  for (const name in given) {
    if (given[name] === undefined || isDeepStrictEqual(before.get(name), given[name])) continue
    changed[name] = given[name]
    isChanged = true
  }
  return isChanged ? changed : null
}
