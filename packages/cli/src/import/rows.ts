/**
 * Reads a list of rules in any format as a stream of rows, so that the whole file is never in memory. Bytes that are not UTF-8 are an
 * error, because replacement characters would change machine ids.
 */

import { createReadStream } from 'node:fs'

import { EXIT, Failure } from '../failure.ts'

export interface Row {
  /** The position for messages: `line 17`, `item 3`. */
  where: string
  fields: Readonly<Record<string, unknown>>
}

export type Rows = AsyncIterable<Row>

export const FORMATS = ['txt', 'csv', 'json', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

/** Returns the format for the extension of a file. Throws Failure for an unknown extension. */
export function formatOf(path: string): Format {
  const extension = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase()
  if (extension === 'ndjson') return 'jsonl'
  if (extension === 'list' || extension === 'netset' || extension === 'ipset') return 'txt'
  const found = FORMATS.find((format) => format === extension)
  if (found === undefined)
    throw new Failure(EXIT.usage, `The extension of ${path} is unknown. Set --format to one of ${FORMATS.join(', ')}`)
  return found
}

/** Reads a file as chunks of text, without its byte order mark. Throws Failure for bytes that are not UTF-8. */
export async function* readText(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Buffer): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch {
      throw new Failure(EXIT.usage, `${path} is not UTF-8. Convert the file to UTF-8`)
    }
  }
  for await (const chunk of createReadStream(path)) if (chunk instanceof Buffer) yield decode(chunk)
  const rest = decode()
  if (rest !== '') yield rest
}

/** Reads lines without their line endings, numbered from 1. */
export async function* readLines(path: string): AsyncGenerator<{ line: string; number: number }> {
  let rest = ''
  let number = 0
  for await (const piece of readText(path)) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield { line: line.endsWith('\r') ? line.slice(0, -1) : line, number: ++number }
  }
  if (rest !== '') yield { line: rest, number: number + 1 }
}
