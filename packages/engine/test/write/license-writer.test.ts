import { expect, test } from 'vitest'

import { createIndex } from '../../src/index.ts'
import { IndexStore } from '../../src/memory/index-store.ts'
import {
  EXTENSION_LICENSE,
  EXTENSION_WORDS,
  KIND_LICENSE,
  LICENSE_EXTENSION,
  ROW_WORDS,
} from '../../src/memory/layout.ts'
import { license, LICENSE, tenant } from '../support/rows.ts'

test('a license keeps its extension when it is replaced, and its removal frees it', () => {
  const writer = createIndex({ reserve: 'small' })
  writer.apply(tenant())
  const { licenses, extensions, lookup } = new IndexStore(writer.shared)
  const row = lookup.findId(KIND_LICENSE, LICENSE)
  const extension = extensions.allocate()
  licenses.region.words[row * ROW_WORDS + LICENSE_EXTENSION] = extension
  extensions.region.words[extension * EXTENSION_WORDS + EXTENSION_LICENSE] = row
  writer.apply([license({ status: 'suspended' })])
  expect(licenses.region.words[row * ROW_WORDS + LICENSE_EXTENSION]).toBe(extension)
  expect(extensions.live).toBe(1)
  writer.apply([{ entity: 'license', id: LICENSE, row: null }])
  expect(extensions.live).toBe(0)
})

test('licenses without an extension allocate none', () => {
  const writer = createIndex({ reserve: 'small' })
  const before = writer.stats().bytes.extensions
  writer.apply(tenant())
  expect(writer.stats().bytes.extensions).toBe(before)
})
