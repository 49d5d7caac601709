/**
 * The columns of a feed entity, declared as one function from a `ColumnReader` to a row. A call with a recorder yields
 * the list of columns to select. A call with a `RowDecoder` builds a row from the fields that Postgres sent. So the
 * function must read the same columns in the same order in every call.
 */

/**
 * Reads the columns of a row in order. Each method receives the column's name, and its SQL if that differs from the
 * name.
 */
export interface ColumnReader {
  /** Reads 16 bytes. The view shares memory with the received data. */
  uuid(name: string, options?: ColumnOptions): Uint8Array
  uuidOrNull(name: string, options?: ColumnOptions): Uint8Array | null
  /** Reads 16 bytes. Consecutive rows with the same value share one view. */
  repeatedUuid(name: string, options?: ColumnOptions): Uint8Array
  /** Reads a `bytea`, or the UTF-8 bytes of a `text`. The view shares memory with the received data. */
  bytes(name: string, options?: ColumnOptions): Uint8Array
  bytesOrNull(name: string, options?: ColumnOptions): Uint8Array | null
  text(name: string, options?: ColumnOptions): string
  integer(name: string, options?: ColumnOptions): number
  integerOrNull(name: string, options?: ColumnOptions): number | null
  boolean(name: string, options?: ColumnOptions): boolean
  /** Reads a `timestamptz` as milliseconds since 1970, rounded down. Returns Infinity for null. */
  timeOrNever(name: string, options?: ColumnOptions): number
}

interface ColumnOptions {
  /** The expression to select, by default the column itself. */
  readonly sql?: string
  /**
   * The columns of the entity's table that determine the value, by default the column itself. The list may be empty.
   */
  readonly dependsOn?: readonly string[]
}

export interface Column {
  readonly sql: string
  /** An update of one of these columns is a change of the entity. The triggers that write the change log compare them. */
  readonly dependsOn: readonly string[]
}

/** Returns the columns that `read` reads, in order. */
export function columnsOf(read: (columns: ColumnReader) => unknown): Column[] {
  const columns: Column[] = []
  const record = <T>(value: T) => {
    return (name: string, { sql = name, dependsOn = [name] }: ColumnOptions = {}): T => {
      columns.push({ sql, dependsOn })
      return value
    }
  }
  const bytes = new Uint8Array(0)
  read({
    uuid: record(bytes),
    uuidOrNull: record(null),
    repeatedUuid: record(bytes),
    bytes: record(bytes),
    bytesOrNull: record(null),
    text: record(''),
    integer: record(0),
    integerOrNull: record(null),
    boolean: record(false),
    timeOrNever: record(0),
  })
  return columns
}
