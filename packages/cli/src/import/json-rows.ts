/** Reads JSON: an array of rules or of bare values, `{"rules": […]}` in the format of the API, or one rule in each line. */

import { EXIT, Failure } from '../failure.ts'
import { readLines, readText, type Row, type Rows } from './rows.ts'

/** The maximum length of a JSON file, which is parsed as a whole. JSON lines have no limit. */
const MAX_LENGTH = 256 * 1024 * 1024

export async function* jsonRows(path: string): Rows {
  let text = ''
  for await (const piece of readText(path)) {
    text += piece
    if (text.length > MAX_LENGTH)
      throw new Failure(
        EXIT.usage,
        `${path} is longer than 256 MiB. Write one rule in each line, with the extension .jsonl`,
      )
  }
  const value = parse(text, path, '')
  const list: unknown = typeof value === 'object' && value !== null && 'rules' in value ? value.rules : value
  if (!Array.isArray(list))
    throw new Failure(EXIT.usage, `${path} contains no rules; it must be an array, or an object with the array "rules"`)
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
