/**
 * Output of commands: results on standard output, everything else on standard error. With `--json`, a result is one JSON
 * value and so is an error, so that scripts never parse sentences.
 */

import type { Failure } from './failure.ts'

export interface Output {
  /** Writes the result: `value` with --json, `text` otherwise. */
  result: (value: unknown, text: string) => void
  /** Writes a hint for people; nothing with --json. */
  note: (line: string) => void
  /** Writes a line that the next one replaces; nothing unless standard error is a terminal. */
  progress: (line: string) => void
}

export interface Streams {
  out: (text: string) => void
  err: (text: string) => void
  isTerminal: boolean
}

export function createOutput(streams: Streams, json: boolean): Output {
  let unfinished = false
  const finish = (): void => {
    if (unfinished) streams.err('\r\u001b[K')
    unfinished = false
  }
  return {
    result: (value, text) => {
      finish()
      streams.out(`${json ? JSON.stringify(value, null, 2) : text}\n`)
    },
    note: (line) => {
      finish()
      if (!json) streams.err(`${line}\n`)
    },
    progress: (line) => {
      if (json || !streams.isTerminal) return
      streams.err(`\r\u001b[K${line}`)
      unfinished = true
    },
  }
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
