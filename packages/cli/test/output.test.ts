import { describe as group, expect, test } from 'vitest'

import { Failure } from '../src/failure.ts'
import { createOutput, describe, reportFailure, table } from '../src/output.ts'

/** Sets the title of a terminal, writes its clipboard, moves the cursor, and reverses the text. */
const HOSTILE =
  'fp\u001b]0;PWNED\u0007\u001b[1A\u009b2K\u001b]52;c;ZQ==\u0007\u007f\u202egnp\u2066\r\nADA  FAKE ROW\tx\u2028y'
// oxlint-disable-next-line no-control-regex -- the characters that must not be written
const UNSAFE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

function outputOf(json = false, get?: string, outIsTerminal = true) {
  const written = { out: '', err: '' }
  const streams = {
    out: (text: string) => void (written.out += text),
    err: (text: string) => void (written.err += text),
    outIsTerminal,
    isTerminal: true,
  }
  return { written, streams, output: createOutput(streams, { json, get }) }
}

group('text from outside', () => {
  test('cannot control a terminal or add a row in a table and a description', () => {
    const { written, output } = outputOf()
    output.result({}, table(['ID', 'NAME'], [[HOSTILE, 'host']]))
    expect(written.out.split('\n')).toHaveLength(3)
    output.result({}, describe({ name: HOSTILE, note: null }))
    expect(written.out).not.toMatch(UNSAFE)
    expect(written.out).toContain(String.raw`fp\u001b]0;PWNED\u0007\u001b[1A\u009b2K`)
    expect(written.out.split('\n')).toHaveLength(5)
  })

  test('aligns the columns of a table by the escaped text', () => {
    expect(table(['A', 'B'], [['\u001b', 'x']])).toBe(`A       B\n${String.raw`\u001b`}  x`)
  })

  test('cannot control a terminal in a sentence, a note, progress and an error', () => {
    const { written, streams, output } = outputOf()
    output.result({}, `Deleted ${HOSTILE}.`)
    output.note(HOSTILE)
    reportFailure(streams, false, new Failure(1, HOSTILE, { code: 'X', details: [HOSTILE] }))
    reportFailure(streams, true, new Failure(1, HOSTILE))
    expect(written.out + written.err).not.toMatch(UNSAFE)
    output.progress(HOSTILE)
    expect(written.err.split('\r\u001b[K').at(-1)).not.toMatch(UNSAFE)
  })

  test('is unchanged for a program that parses JSON or reads one field', () => {
    const json = outputOf(true)
    json.output.result({ name: HOSTILE }, '')
    expect(json.written.out).not.toMatch(UNSAFE)
    expect(JSON.parse(json.written.out)).toEqual({ name: HOSTILE })
    const piped = outputOf(false, 'name', false)
    piped.output.result({ name: HOSTILE }, '')
    expect(piped.written.out).toBe(`${HOSTILE}\n`)
    const shown = outputOf(false, 'name', true)
    shown.output.result({ name: HOSTILE }, '')
    expect(shown.written.out).not.toMatch(UNSAFE)
  })
})
