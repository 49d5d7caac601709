/**
 * What a change would really change. A PATCH that changes nothing leaves no trace: no new `updatedAt`, no audit entry, nothing that
 * wakes a validator.
 */
import { isDeepStrictEqual } from 'node:util'

type Given<Row> = Partial<Record<keyof Row, unknown>>

/** The given fields that differ from the row's; null: none does. Undefined fields are not given. */
export function differences<Row extends object, Fields extends Given<Row>>(
  row: Row,
  given: Fields,
): Partial<Fields> | null {
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

/** As the tables take it: metadata as text, for it may be what Postgres would take for something else. */
export function storable<Fields extends { metadata?: object | undefined }>({ metadata, ...fields }: Fields) {
  return { ...fields, ...(metadata !== undefined && { metadata: JSON.stringify(metadata) }) }
}
