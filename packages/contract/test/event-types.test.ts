/** Compares docs/event-types.md with the declarations of events. */

import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'
import { z } from 'zod'

import { event, eventTypes } from '../src/management/events.ts'

const page = readFileSync(new URL('../../../docs/event-types.md', import.meta.url), 'utf8')

test('docs/event-types.md lists every type with its description', () => {
  const rows = Object.entries(eventTypes).map(([type, { description }]) => `| \`${type}\` | ${description} |`)
  expect(page.split('\n').filter((line) => line.startsWith('| `'))).toEqual(rows)
})

test('the example in docs/event-types.md has exactly the members of its type', () => {
  const example = event.parse(JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? ''))
  const { data } = z
    .object({ type: z.literal('product.updated'), data: eventTypes['product.updated'].data.strict() })
    .parse(example)
  expect({ ...example, data }).toEqual(example)
})
