/** Reads CSV with a heading line that names the fields of a rule. Empty cells count as absent. */

import { pipeline, Readable } from 'node:stream'

import { readCell } from '@keyward/contract/text'
import { CsvError, parse } from 'csv-parse'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { readText, type Row, type Rows } from './rows.ts'

const record = z.object({ record: z.record(z.string(), z.string()), info: z.object({ lines: z.int() }) })

export async function* csvRows(path: string): Rows {
  const parser = parse({ columns: true, info: true, skip_empty_lines: true })
  pipeline(Readable.from(readText(path)), parser, () => undefined) // the loop below throws the errors of the stream
  try {
    for await (const item of parser) yield rowOf(record.parse(item))
  } catch (error) {
    if (error instanceof CsvError) throw new Failure(EXIT.usage, `${path} is not valid CSV: ${error.message}`)
    throw error
  }
}

function rowOf(parsed: z.infer<typeof record>): Row {
  const fields: Record<string, unknown> = {}
  for (const [name, cell] of Object.entries(parsed.record))
    if (cell !== '') fields[name] = name === 'allowSuspendedOrExpired' ? booleanOf(cell) : readCell(cell)
  return { where: `line ${parsed.info.lines}`, fields }
}

/** Parses true and false. Returns any other text unchanged, so that validation reports the error with its line. */
function booleanOf(cell: string): unknown {
  const word = cell.toLowerCase()
  return word === 'true' ? true : word === 'false' ? false : cell
}
