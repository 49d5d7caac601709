/**
 * Reads JSON: an array of rules or of bare values, `{"rules": […]}` in the format of the API, or one rule in each line. Arrays are
 * parsed as a stream.
 */

import { JSONParser } from '@streamparser/json'

import { EXIT, Failure } from '../failure.ts'
import { readLines, readText, type Row, type Rows } from './rows.ts'

const MAX_HEAD = 64 * 1024

export async function* jsonRows(path: string): Rows {
  let parser: JSONParser | undefined
  let found: Row[] = []
  let count = 0
  /** The beginning of the text, by which an empty list is recognized. */
  let head = ''
  try {
    for await (const piece of readText(path)) {
      if (parser === undefined) {
        if (piece.trim() === '') continue
        parser = new JSONParser({ paths: [piece.trimStart().startsWith('[') ? '$.*' : '$.rules.*'], keepStack: false })
        parser.onValue = ({ value }) => void found.push(rowOf(`item ${++count}`, value))
      }
      if (head.length <= MAX_HEAD) head += piece
      parser.write(piece)
      yield* found
      found = []
    }
    if (parser?.isEnded === false) parser.end()
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(EXIT.usage, `${path} is not valid JSON after item ${count}: ${messageOf(error)}`)
  }
  if (count === 0 && !isEmptyList(head))
    throw new Failure(EXIT.usage, `${path} contains no rules; it must be an array, or an object with the array "rules"`)
}

/** Returns whether the text is an empty array, or an object whose `rules` are one. */
function isEmptyList(text: string): boolean {
  if (text.length > MAX_HEAD) return false
  const value: unknown = JSON.parse(text === '' ? 'null' : text)
  const list: unknown = typeof value === 'object' && value !== null && 'rules' in value ? value.rules : value
  return Array.isArray(list) && list.length === 0
}

export async function* jsonLineRows(path: string): Rows {
  for await (const { line, number } of readLines(path)) {
    if (line.trim() === '') continue
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch (error) {
      throw new Failure(EXIT.usage, `${path} is not valid JSON in line ${number}: ${messageOf(error)}`)
    }
    yield rowOf(`line ${number}`, value)
  }
}

function rowOf(where: string, value: unknown): Row {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return { where, fields: isObject ? { ...value } : { value } }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
