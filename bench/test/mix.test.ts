import { describe, expect, test } from 'vitest'

import { interleave, parseMix } from '../src/load/mix.ts'

describe('mix', () => {
  test('parseMix returns kinds with their weights and omits kinds of weight 0', () => {
    expect([...parseMix('known=90, new=2,unknown=0')]).toEqual([
      ['known', 90],
      ['new', 2],
    ])
  })

  test.each(['known', 'known=', 'known=-1', 'known=x', 'old=3', 'known=1,known=2', 'known=0', '', 'known=1=2'])(
    'parseMix rejects "%s"',
    (text) => {
      expect(() => parseMix(text)).toThrow(/kind of check|number of at least 0|given twice|every weight/)
    },
  )

  test('interleave returns the exact proportions of the mix over a whole cycle', () => {
    const counts = new Map<string, number>()
    for (const kind of interleave(parseMix('known=90,new=2,blacklisted=3,excluded=2,unknown=3'), 1000)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
    expect(Object.fromEntries(counts)).toEqual({ known: 900, new: 20, blacklisted: 30, excluded: 20, unknown: 30 })
  })

  test('interleave spreads a rare kind evenly', () => {
    const kinds = interleave(parseMix('known=9,new=1'), 100)
    const places = kinds.flatMap((kind, at) => (kind === 'new' ? [at] : []))
    expect(places.slice(1).map((at, n) => at - (places[n] ?? 0))).toEqual(Array.from({ length: 9 }, () => 10))
  })
})
