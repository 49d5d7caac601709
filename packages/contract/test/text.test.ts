import { expect, test } from 'vitest'

import { lines, oneLine, readCell, writeCell } from '../src/text.ts'

const HOSTILE = 'fp\u001b]0;PWNED\u0007\u007f\u009b2K\u061c\u200e\u2028\u202egnp\u2066\r\nADA  FAKE ROW'

test('escapes control characters and characters that change the direction of text', () => {
  const escaped = String.raw`fp\u001b]0;PWNED\u0007\u007f\u009b2K\u061c\u200e\u2028\u202egnp\u2066\u000d`
  expect(oneLine(HOSTILE)).toBe(`${escaped}${String.raw`\u000a`}ADA  FAKE ROW`)
  expect(lines(HOSTILE)).toBe(`${escaped}\nADA  FAKE ROW`)
  expect(oneLine('Ada Łovelace, مرحبا, 👩‍💻')).toBe('Ada Łovelace, مرحبا, 👩‍💻')
})

test.each([
  HOSTILE,
  '=HYPERLINK("x")',
  "'=1",
  '\t=1',
  "'\r+1",
  '\u202e-1',
  String.raw`DESKTOP\user, \u202e, \u005cu202e, \u00e9`,
  'plain, "text"\nof two lines',
  "x;=1\n+2;'-3; @4",
])('a cell of CSV shows %j as text, and is read back exactly', (value) => {
  const cell = writeCell(value)
  expect(lines(cell)).toBe(cell)
  expect(cell).not.toMatch(/(?:^|[;\n])[=+\-@\t\r]/)
  expect(readCell(cell)).toBe(value)
})

test('reads cells that other programs have written', () => {
  expect(readCell(String.raw`caf\u00e9 \user`)).toBe(String.raw`caf\u00e9 \user`)
  expect(readCell("'\t=1")).toBe('\t=1')
  expect(readCell("it's")).toBe("it's")
})
