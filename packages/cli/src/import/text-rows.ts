/**
 * Plain lists: one value a line. `#` and `;` begin a comment, as in the lists that are published of networks; one
 * behind a value becomes the rule's note. Machine ids are taken as they stand, since they may hold such signs.
 */
import { readLines, type Rows } from './rows.ts'

const LONGEST_NOTE = 500

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

/** Cut to what a note may hold, but never inside a character: half of one is no text. */
function noteOf(comment: string): string {
  return comment.slice(0, LONGEST_NOTE).replace(/[\uD800-\uDBFF]$/, '')
}
