import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { caseList } from '../contract-suite/document.ts'
import { contractCases } from '../contract-suite/suite.ts'

test('docs/client/contract-suite.md lists every case', () => {
  const page = readFileSync(new URL('../../../docs/client/contract-suite.md', import.meta.url), 'utf8')
  expect(page.slice(page.indexOf('### '))).toBe(`${caseList()}\n`)
})

test('no two cases have the same name', () => {
  const names = contractCases.map(({ name }) => name)
  expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
})
