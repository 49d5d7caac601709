import { expect, test } from 'vitest'

import { toCsv } from '../src/parts/csv.ts'

test('quotes separators, quotes and line breaks, and disarms formulas', () => {
  const rows = [
    { name: 'a,b', note: 'say "hi"', count: -1, end: null },
    { name: '=cmd()', note: 'two\nlines', count: 2, end: '+1' },
  ]
  const lines = ['name,note,count,end', '"a,b","say ""hi""",-1,', `'=cmd(),"two\nlines",2,'+1`, '']
  expect(toCsv(rows)).toBe(`\uFEFF${lines.join('\r\n')}`)
})
