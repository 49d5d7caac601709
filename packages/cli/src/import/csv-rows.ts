/** Reads CSV with a heading line that names the fields of the rows. */

import { pipeline, Readable } from 'node:stream'

import { readCell } from '@keyward/contract/text'
import { CsvError, parse } from 'csv-parse'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { readText, type Rows } from './rows.ts'

const row = z.object({ record: z.record(z.string(), z.string()), info: z.object({ lines: z.int() }) })

/** Reads the records of CSV with a heading line. Cells are as in the file. */
export async function* csvRecords(
  path: string,
  delimiter = ',',
): AsyncGenerator<{ where: string; record: Record<string, string> }> {
  const parser = parse({ columns: true, info: true, skip_empty_lines: true, delimiter })
  pipeline(Readable.from(readText(path)), parser, () => undefined) // the loop below throws the errors of the stream
  try {
    for await (const item of parser) {
      const { record: cells, info } = row.parse(item)
      yield { where: `line ${info.lines}`, record: cells }
    }
  } catch (error) {
    if (error instanceof CsvError) throw new Failure(EXIT.usage, `${path} is not valid CSV: ${error.message}`)
    throw error
  }
}

/** Reads the fields of rules. Empty cells count as absent. */
export async function* csvRows(path: string): Rows {
  for await (const { where, record } of csvRecords(path)) {
    const fields: Record<string, unknown> = {}
    for (const [name, cell] of Object.entries(record))
      if (cell !== '') fields[name] = name === 'allowSuspendedOrExpired' ? booleanOf(cell) : readCell(cell)
    yield { where, fields }
  }
}

/** Parses true and false. Returns any other text unchanged, so that validation reports the error with its line. */
function booleanOf(cell: string): unknown {
  const word = cell.toLowerCase()
  return word === 'true' ? true : word === 'false' ? false : cell
}
