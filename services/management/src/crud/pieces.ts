/** The number of rows in one statement. Converting their values takes a few milliseconds. */
const ROWS_PER_STATEMENT = 500

/** Yields the list in pieces, each small enough for one statement. */
export function* piecesOf<Value>(list: readonly Value[]): Generator<Value[]> {
  for (let at = 0; at < list.length; at += ROWS_PER_STATEMENT) yield list.slice(at, at + ROWS_PER_STATEMENT)
}
