import { expect, test } from 'vitest'

import { line, type Row, summaryOf } from '../src/neighbours/table.ts'
import type { Measured } from '../src/neighbours/victim.ts'

function measured(check: number[], errors: Record<string, number> = {}): Measured {
  return { durations: { check, claim: [], release: [], read: [], write: [], evaluate: [], file: [] }, errors }
}

test('summarizes attacks by the median of the rounds and the figures of the best round', () => {
  const row: Row = { quiet: [], attacked: [], responses: [] }
  row.quiet.push(measured([2]), measured([40]), measured([4]))
  row.attacked.push(measured([10]), measured([3]), measured([12], { 'check 503': 2 }))
  row.responses.push({ 200: 5 }, { 200: 1, 503: 2 })
  const { kinds, errors, responses } = summaryOf(row)
  expect(kinds.check).toMatchObject({ quiet: { p99: 4, bestP99: 2 }, attacked: { p99: 10, bestP99: 3 } })
  expect(kinds.check).toMatchObject({ count: 3, ratio: 2.5, bestRatio: 1.5 })
  expect(errors).toEqual({ quiet: 0, attacked: 2, kinds: { 'check 503': 2 } })
  expect(responses).toEqual({ 200: 6, 503: 2 })
  expect(line('flood', row)).toMatch(/^flood \| check 4→10! \(1\.5\) .* errors 0→2 \{"check 503":2\} \| 200×6 503×2$/)
})
