/** Tests of `support/checked.ts`: a wrong word in a record is detected where the record is written and where it is read. */

import { expect, test } from 'vitest'

import { type Change, type IndexReader, type IndexWriter } from '../../src/index.ts'
import { openStore, type ReadStore } from '../../src/memory/index-store.ts'
import {
  CUSTOMER_WORDS,
  EXTENSION_LICENSE,
  EXTENSION_WORDS,
  GENERATION,
  LICENSE_CUSTOMER,
  LICENSE_EXTENSION,
  LICENSE_PRODUCT,
  ORGANIZATION_ADDRESS_RULES,
  ORGANIZATION_CHILDREN,
  PRODUCT_CHILDREN,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ORGANIZATION,
  RULE_SCOPE,
  RULE_VALUE,
  SCOPE_COUNTS,
  SCOPE_OWNER,
  SCOPE_RESTRICTED_UNTIL,
  SCOPE_ROOT4,
  SCOPE_RULES,
  VALUE_REFERENCES,
} from '../../src/memory/layout.ts'
import { createCheckedIndex, openCheckedIndex } from '../support/checked.ts'
import { decide, idOf, license, machine, rule, tenant } from '../support/rows.ts'

function setUp(): { writer: IndexWriter; reader: IndexReader; store: ReadStore } {
  const writer = createCheckedIndex({ reserve: 'small' })
  const country = { type: 'COUNTRY', country: 'DE' } as const
  const changes: Change[] = [
    ...tenant(),
    license({ entitlements: new Uint8Array([1]) }),
    rule(country, { id: idOf(6, 1), kind: 'RESTRICTION', expiresAtMs: 5 }),
    rule({ type: 'IP', network: { family: 4, words: [0], prefixLength: 8 } }, { id: idOf(6, 2) }),
  ]
  expect(writer.apply(changes)).toEqual([])
  return { writer, reader: openCheckedIndex(writer.shared), store: openStore(writer.shared) }
}

const row = (store: ReadStore, name: 'licenses' | 'organizations' | 'products' | 'rules' | 'scopes'): Int32Array =>
  store[name].region.words.subarray(ROW_WORDS, 2 * ROW_WORDS)

const BY_WRITER: Record<string, (store: ReadStore) => void> = {
  'the product of a license': (store) => (row(store, 'licenses')[LICENSE_PRODUCT] = 9),
  'the customer of a license': (store) => (row(store, 'licenses')[LICENSE_CUSTOMER] = 9),
  'the extension of a license': (store) => (row(store, 'licenses')[LICENSE_EXTENSION] = 0),
  'the license of an extension': (store) => (store.extensions.region.words[EXTENSION_WORDS + EXTENSION_LICENSE] = 2),
  'the children of an organization': (store) => row(store, 'organizations')[ORGANIZATION_CHILDREN]!++,
  'the address rules of an organization': (store) => row(store, 'organizations')[ORGANIZATION_ADDRESS_RULES]!--,
  'the children of a product': (store) => row(store, 'products')[PRODUCT_CHILDREN]!++,
  'the generation of a customer': (store) => (store.customers.region.words[CUSTOMER_WORDS + GENERATION] = 0),
  'the organization of a rule': (store) => (row(store, 'rules')[RULE_ORGANIZATION] = 9),
  'the scope of a rule': (store) => (row(store, 'rules')[RULE_SCOPE] = 9),
  'the value of a rule': (store) => row(store, 'rules')[RULE_VALUE]!++,
  'the owner of a scope': (store) => (row(store, 'scopes')[SCOPE_OWNER] = 9),
  'the rules of a scope': (store) => row(store, 'scopes')[SCOPE_RULES]!++,
  'the country rules of a scope': (store) => row(store, 'scopes')[SCOPE_COUNTS + 1]!++,
  'the trie of a scope': (store) => (row(store, 'scopes')[SCOPE_ROOT4] = 0),
  'the time of restrictions': (store) => store.scopes.region.doubles[ROW_DOUBLES + SCOPE_RESTRICTED_UNTIL / 2 + 2]!++,
  'the references of a value': (store) => store.memory.regions.values.words[ROW_WORDS + VALUE_REFERENCES]!++,
  'an entry of a table': (store) => store.memory.regions.byKey.words.fill(0),
}

test.each(Object.keys(BY_WRITER))('the checked writer detects that %s is wrong', (name) => {
  const { writer, store } = setUp()
  BY_WRITER[name]!(store)
  expect(() => writer.apply([machine(1)])).toThrow('The index is not sound')
})

test.each([
  'the customer of a license',
  'the license of an extension',
  'the generation of a customer',
  'the organization of a rule',
  'the owner of a scope',
])('the checked reader detects that %s is wrong', (name) => {
  const { reader, store } = setUp()
  expect(decide(reader, 'm').matchedCount).toBe(1)
  BY_WRITER[name]!(store)
  expect(() => decide(reader, 'm')).toThrow('The verdict refers to unsound records')
})
