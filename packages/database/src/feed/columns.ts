/**
 * The columns of a feed entity, declared as one function from a `ColumnReader` to a row. Called with a recorder, the function
 * yields the list of columns to select; called with a `RowDecoder`, it builds a row from the fields that Postgres sent.
 * It must therefore read its columns unconditionally, always in the same order.
 */

/** Reads the next column of a row. Each method names the column, with its SQL when that is not the name itself. */
export interface ColumnReader {
  /** 16 bytes; the view shares memory with what Postgres sent. */
  uuid(name: string, options?: ColumnOptions): Uint8Array
  uuidOrNull(name: string, options?: ColumnOptions): Uint8Array | null
  /** The same as `uuid`, but rows that follow each other and have the same value share one view. */
  repeatedUuid(name: string, options?: ColumnOptions): Uint8Array
  /** A `bytea`, or the UTF-8 bytes of a `text`; the view shares memory with what Postgres sent. */
  bytes(name: string, options?: ColumnOptions): Uint8Array
  bytesOrNull(name: string, options?: ColumnOptions): Uint8Array | null
  text(name: string, options?: ColumnOptions): string
  integer(name: string, options?: ColumnOptions): number
  integerOrNull(name: string, options?: ColumnOptions): number | null
  boolean(name: string, options?: ColumnOptions): boolean
  /** A `timestamptz` in milliseconds since 1970, rounded down; Infinity when it is null. */
  timeOrNever(name: string, options?: ColumnOptions): number
}

export interface ColumnOptions {
  /** The expression to select; the column itself by default. */
  readonly sql?: string
  /** The columns of the entity's table that decide the value; the column itself by default, none when empty. */
  readonly dependsOn?: readonly string[]
}

export interface Column {
  readonly sql: string
  /** An update of one of these is a change of the entity: the triggers that write the change log compare them. */
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
