/** Reads rows of CSV with a heading line, and checks each before anything is sent. */

import { z } from 'zod'

import { text } from '../text.ts'
import { InputError } from './input.ts'
import type { BadRow } from './work.ts'

const csvRecord = z.array(z.object({ record: z.record(z.string(), z.string()), info: z.object({ lines: z.int() }) }))

export interface Rows<Row> {
  rows: Row[]
  bad: BadRow[]
}

/** Returns no rows, and the reason. */
export function noRows(where: string, detail: string): { rows: never[]; bad: BadRow[] } {
  return { rows: [], bad: [{ where, detail }] }
}

/** Separates the rows from the invalid ones. */
export function gather<Row extends { body: unknown }>(all: readonly (Row | BadRow)[]): Rows<Row> {
  const read: Rows<Row> = { rows: [], bad: [] }
  for (const row of all)
    if ('body' in row) read.rows.push(row)
    else read.bad.push(row)
  return read
}

/** Returns the result of `check`, or its input error as an invalid row. */
export function checked<Row>(where: string, check: () => Row): Row | BadRow {
  try {
    return check()
  } catch (error) {
    if (error instanceof InputError) return { where, detail: error.message }
    throw error
  }
}

/** Returns the records with their lines, or the reason why the text is not CSV. */
export async function readCsv(
  content: string,
  delimiter = ',',
): Promise<{ where: string; record: Record<string, string> }[] | ReturnType<typeof noRows>> {
  const { CsvError, parse } = await import('csv-parse/browser/esm/sync')
  const options = { columns: true, info: true, skip_empty_lines: true, trim: true, bom: true, delimiter } as const
  try {
    const records = csvRecord.parse(parse(content, options))
    return records.map(({ record, info }) => ({ where: text.line(info.lines), record }))
  } catch (error) {
    if (error instanceof CsvError) return noRows('CSV', error.message)
    throw error
  }
}
