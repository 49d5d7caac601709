/**
 * Computes the difference between a row and a PATCH. A PATCH without a difference keeps `updatedAt`, and writes no audit entry and no
 * change for validators.
 */

import { isDeepStrictEqual } from 'node:util'

/** Returns the given fields that differ from the row, or null when none differs. An undefined field counts as absent. */
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
