import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { caseList } from '../contract-suite/document.ts'
import { contractCases } from '../contract-suite/suite.ts'

test('lists every case in docs/client/contract-suite.md', () => {
  const page = readFileSync(new URL('../../../docs/client/contract-suite.md', import.meta.url), 'utf8')
  expect(page.slice(page.indexOf('### '))).toBe(`${caseList()}\n`)
})

test('gives each case a unique name', () => {
  const names = contractCases.map(({ name }) => name)
  expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
})
