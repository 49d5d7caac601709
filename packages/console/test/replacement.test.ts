import { expect, test } from 'vitest'

import { countsOf } from '../src/pages/rules/replacement.ts'

type Row = Parameters<typeof countsOf>[0][number]

const row = (identity: string, body: Row['body'] = {}): Row => ({ identity, body })
const END = '2031-01-01T00:00:00.000Z'
const none = { created: 0, changed: 0, unchanged: 0, removed: 0, repeated: 0 }

test.each<[string, Row[], Row[], Partial<typeof none>]>([
  [
    'keeps equal rules, and changes notes',
    [row('a'), row('b')],
    [row('a', { note: null }), row('b', { note: 'n' })],
    { unchanged: 1, changed: 1 },
  ],
  ['creates and removes', [row('a')], [row('b'), row('c')], { created: 2, removed: 1 }],
  ['changes a rule in place', [row('a')], [row('a', { mode: 'MONITOR' })], { changed: 1 }],
  [
    'covers rows that do not end later',
    [],
    [row('a', { expiresAt: END }), row('a'), row('a')],
    { created: 1, repeated: 2 },
  ],
  [
    'keeps both modes of one value',
    [row('a'), row('a', { mode: 'MONITOR' })],
    [row('a', { mode: 'MONITOR' }), row('a')],
    { unchanged: 2 },
  ],
  [
    'removes one of two rules of one value',
    [row('a'), row('a', { mode: 'MONITOR' })],
    [row('a')],
    { unchanged: 1, removed: 1 },
  ],
  [
    'creates a second mode of one value',
    [row('a')],
    [row('a'), row('a', { mode: 'MONITOR' })],
    { unchanged: 1, created: 1 },
  ],
  ['lengthens a rule', [row('a', { expiresAt: END })], [row('a')], { changed: 1 }],
])('the preview of a replacement %s', (_name, stored, given, counts) => {
  expect(countsOf(stored, given)).toEqual({ ...none, ...counts })
})
