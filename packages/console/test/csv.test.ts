import { expect, test } from 'vitest'

import { toCsv } from '../src/parts/csv.ts'

test('quotes separators, quotes and line breaks, disarms formulas and escapes control characters', () => {
  const rows = [
    { name: 'fp\u001b[2K\u202egnp', note: '\tx', count: 0, end: '\u0085' },
    { name: 'a,b', note: 'say "hi"', count: -1, end: null },
    { name: '=cmd()', note: 'two\nlines', count: 2, end: '+1' },
  ]
  const lines = [
    'name,note,count,end',
    String.raw`fp\u001b[2K\u202egnp,\u0009x,0,\u0085`,
    '"a,b","say ""hi""",-1,',
    `'=cmd(),"two\nlines",2,'+1`,
    '',
  ]
  expect(toCsv(rows)).toBe(`\uFEFF${lines.join('\r\n')}`)
})
