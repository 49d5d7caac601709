/**
 * Reads plain lists with one value in each line. `#` and `;` begin a comment, as in published lists of networks. A comment after a value
 * becomes the note of the rule. A machine id may contain `#` and `;`, so its line is read unchanged. A line that begins with `#` or `;` is
 * always a comment.
 */

import { readLines, type Rows } from './rows.ts'

const MAX_NOTE_LENGTH = 500

export async function* textRows(path: string, isExact: boolean): Rows {
  for await (const { line, number } of readLines(path)) {
    const where = `line ${number}`
    if (line.trim() === '' || /^\s*[#;]/.test(line)) continue
    if (isExact) {
      yield { where, fields: { value: line } }
      continue
    }
    const [, value = '', comment = ''] = /^\s*([^#;]*?)\s*(?:[#;]+\s*(.*?)\s*)?$/.exec(line) ?? []
    yield { where, fields: { value, ...(comment === '' ? {} : { note: noteOf(comment) }) } }
  }
}

/** Cuts a comment to the maximum length of a note without splitting a surrogate pair. */
function noteOf(comment: string): string {
  return comment.slice(0, MAX_NOTE_LENGTH).replace(/[\uD800-\uDBFF]$/, '')
}
