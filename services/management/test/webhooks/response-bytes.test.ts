import { expect, test } from 'vitest'

import { ResponseBytes } from '../../src/webhooks/response-bytes.ts'

test('stores at most 16 MiB of responses of an organization on a day', () => {
  let nowMs = Date.parse('2026-11-28T12:00:00Z')
  const responses = new ResponseBytes(() => nowMs)
  const kept = (organization: string) => responses.take(organization, 'é'.repeat(1_024)) !== null
  const hostile = Array.from({ length: 10_000 }, () => kept('hostile'))
  expect(hostile.filter(Boolean)).toHaveLength(8_192)
  expect(kept('quiet')).toBe(true)
  expect(responses.take('quiet', null)).toBeNull()
  nowMs += 86_400_000
  expect(kept('hostile')).toBe(true)
})
