import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { Snapshot } from '../src/snapshot.ts'

test('contains the transactions before xmax that were not running', () => {
  const snapshot = new Snapshot('10:15:11,13')
  const xids = [9n, 10n, 11n, 12n, 13n, 14n, 15n, 16n]
  expect(xids.map((xid) => snapshot.contains(xid))).toEqual([true, true, false, true, false, true, false, false])
  expect(new Snapshot('10:10:').contains(9n)).toBe(true)
})

test('covers another snapshot exactly when it contains all transactions of the other', () => {
  const { int } = random(5)
  const text = (): string => {
    const xmax = 1 + int(10)
    const running = Array.from({ length: xmax }, (_, xid) => xid).filter(() => int(3) === 0)
    return `${running[0] ?? xmax}:${xmax}:${running.join(',')}`
  }
  const xids = Array.from({ length: 12 }, (_, xid) => BigInt(xid))
  let covered = 0
  for (let round = 0; round < 3_000; round++) {
    const [applied, wanted] = [new Snapshot(text()), new Snapshot(text())]
    const expected = xids.every((xid) => !wanted.contains(xid) || applied.contains(xid))
    expect([applied.text, wanted.text, applied.covers(wanted)]).toEqual([applied.text, wanted.text, expected])
    if (expected) covered++
  }
  expect(covered).toBeGreaterThan(100)
})
