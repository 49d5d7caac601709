/**
 * Output of commands: results on standard output, everything else on standard error. With `--json`, a result is one JSON
 * value and so is an error, so that scripts never parse sentences.
 */

import { EXIT, Failure } from './failure.ts'

export interface Output {
  /** Writes the result: `value` with --json, one of its fields with --get, `text` otherwise. */
  result: (value: unknown, text: string) => void
  /** Writes a hint for people; nothing with --json or --get. */
  note: (line: string) => void
  /** Writes a line that the next one replaces; nothing unless standard error is a terminal. */
  progress: (line: string) => void
}

export interface Streams {
  out: (text: string) => void
  err: (text: string) => void
  isTerminal: boolean
}

export interface OutputFlags {
  json: boolean
  /** The field to write; of a list, that of each item. */
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
      if (get === undefined) streams.out(`${json ? JSON.stringify(value, null, 2) : text}\n`)
      else for (const item of Array.isArray(value) ? value : [value]) streams.out(`${fieldOf(item, get)}\n`)
    },
    note: (line) => {
      finish()
      if (forPeople) streams.err(`${line}\n`)
    },
    progress: (line) => {
      if (!forPeople || !streams.isTerminal) return
      streams.err(`\r\u001b[K${line}`)
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
      details: [`It has ${[...fields.keys()].join(', ')}.`],
    })
  return typeof field === 'string' ? field : JSON.stringify(field)
}

/** Writes why a command failed. */
export function reportFailure(streams: Streams, json: boolean, failure: Failure): void {
  const { message, details, code, exitCode } = failure
  if (json) {
    streams.err(
      `${JSON.stringify({ error: { message, ...(code === undefined ? {} : { code }), details, exitCode } })}\n`,
    )
    return
  }
  streams.err(`${code === undefined ? message : `${message} (${code})`}\n`)
  for (const detail of details) streams.err(`  ${detail}\n`)
}

/** Formats names and values, one pair a line. A null value is a dash. */
export function describe(fields: Readonly<Record<string, string | number | null>>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${value ?? '–'}`)
    .join('\n')
}

/** Formats a table with a heading line. Columns are as wide as their widest cell. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
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
