/** Reads JSON: an array of rows or of bare values, an object with the list in the format of the API, or one row in each line. */

import { EXIT, Failure } from '../failure.ts'
import { readLines, readText, type Row, type Rows } from './rows.ts'

/** The maximum length of a JSON file, which is parsed as a whole. JSON lines have no limit. */
const MAX_LENGTH = 256 * 1024 * 1024

export async function* jsonRows(path: string, name = 'rules'): Rows {
  let text = ''
  for await (const piece of readText(path)) {
    text += piece
    if (text.length > MAX_LENGTH)
      throw new Failure(
        EXIT.usage,
        `${path} is longer than 256 MiB. Write one row in each line, with the extension .jsonl`,
      )
  }
  const value = parse(text, path, '')
  const members = typeof value === 'object' && value !== null ? new Map<string, unknown>(Object.entries(value)) : null
  const list: unknown = members?.get(name) ?? value
  if (!Array.isArray(list))
    throw new Failure(
      EXIT.usage,
      `${path} contains no ${name}; it must be an array, or an object with the array "${name}"`,
    )
  for (const [at, item] of list.entries()) yield rowOf(`item ${at + 1}`, item)
}

export async function* jsonLineRows(path: string): Rows {
  for await (const { line, number } of readLines(path)) {
    if (line.trim() === '') continue
    yield rowOf(`line ${number}`, parse(line, path, ` in line ${number}`))
  }
}

function parse(text: string, path: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Failure(EXIT.usage, `${path} is not valid JSON${where}: ${error instanceof Error ? error.message : ''}`)
  }
}

function rowOf(where: string, value: unknown): Row {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return { where, fields: isObject ? { ...value } : { value } }
}
