/** The kinds of columns, with what kysely reads and writes. */

import type { ColumnType } from 'kysely'

/** A time that is read as a Date and written as a Date or as ISO 8601 text. */
export type Moment = ColumnType<Date, Date | string, Date | string>
export type DefaultMoment = ColumnType<Date, Date | string | undefined, Date | string>
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }
/** JSON that is read as an object and written as text, because pg converts an array to a Postgres array. */
export type JsonColumn<T = JsonObject> = ColumnType<T, string, string>
export type JsonColumnOrNull = ColumnType<JsonObject | null, string | null | undefined, string | null>
export type DefaultJsonColumn = ColumnType<JsonObject, string | undefined, string>
export type Bytes = ColumnType<Buffer, Uint8Array, Uint8Array>
