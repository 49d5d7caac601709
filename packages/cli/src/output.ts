/**
 * Writes results to standard output, and notes, progress and errors to standard error. With `--json`, results and errors are
 * JSON values, so that scripts do not have to parse text. Users of apps choose machine ids and host names, so no control character from
 * outside reaches a terminal.
 */

import { lines, oneLine } from '@keyward/contract/text'

import { EXIT, Failure } from './failure.ts'

export interface Output {
  /** Writes the result: `value` with --json, a field of `value` with --get, and otherwise `text`. */
  result: (value: unknown, text: string) => void
  /** Writes a hint for people. It is omitted with --json or --get. */
  note: (line: string) => void
  /** Writes a progress line, which the next output replaces. It is omitted unless standard error is a terminal. */
  progress: (line: string) => void
}

export interface Streams {
  out: (text: string) => void
  err: (text: string) => void
  /** Whether standard output is a terminal. */
  outIsTerminal: boolean
  /** Whether standard error is a terminal. */
  isTerminal: boolean
}

interface OutputFlags {
  json: boolean
  /** The name of the field to write. For a list, the field of each item is written. */
  get?: string | undefined
}

export function createOutput(streams: Streams, { json, get }: OutputFlags): Output {
  const forPeople = !json && get === undefined
  let unfinished = false
  const finish = (): void => {
    if (unfinished) streams.err('\r\u001b[K')
    unfinished = false
  }
  return {
    result: (value, text) => {
      finish()
      if (get === undefined) {
        streams.out(`${lines(json ? JSON.stringify(value, null, 2) : text)}\n`)
        return
      }
      for (const item of Array.isArray(value) ? value : [value]) {
        const field = fieldOf(item, get)
        // A script receives the exact value.
        streams.out(`${streams.outIsTerminal ? oneLine(field) : field}\n`)
      }
    },
    note: (line) => {
      finish()
      if (forPeople) streams.err(`${lines(line)}\n`)
    },
    progress: (line) => {
      if (!forPeople || !streams.isTerminal) return
      streams.err(`\r\u001b[K${oneLine(line)}`)
      unfinished = true
    },
  }
}

/** Returns a field of a result as text. Throws Failure when the result has no such field. */
function fieldOf(value: unknown, name: string): string {
  const fields = new Map<string, unknown>(typeof value === 'object' && value !== null ? Object.entries(value) : [])
  const field = fields.get(name)
  if (field === undefined)
    throw new Failure(EXIT.usage, `The result has no field ${name}`, {
      details: [`Fields: ${[...fields.keys()].join(', ')}.`],
    })
  return typeof field === 'string' ? field : JSON.stringify(field)
}

/** Writes the failure of a command. */
export function reportFailure(streams: Streams, json: boolean, failure: Failure): void {
  const { message, details, code, exitCode } = failure
  if (json) {
    streams.err(
      `${oneLine(JSON.stringify({ error: { message, ...(code === undefined ? {} : { code }), details, exitCode } }))}\n`,
    )
    return
  }
  streams.err(`${oneLine(code === undefined ? message : `${message} (${code})`)}\n`)
  for (const detail of details) streams.err(`  ${oneLine(detail)}\n`)
}

/** Formats names and values with one pair in each line. A null value is shown as a dash. */
export function describe(fields: Readonly<Record<string, string | number | null>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${oneLine(String(value ?? '–'))}`)
    .join('\n')
}

/** Formats a table with a heading line. A column is as wide as its widest cell. */
export function table(heading: readonly string[], given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map(oneLine))
  const widths = heading.map((cell, column) => Math.max(cell.length, ...rows.map((row) => (row[column] ?? '').length)))
  return [heading, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
