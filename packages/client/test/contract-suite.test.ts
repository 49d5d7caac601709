import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { caseList } from '../contract-suite/document.ts'
import { contractCases, vectorCases } from '../contract-suite/suite.ts'

test('lists every case in docs/client/contract-suite.md', () => {
  const page = readFileSync(new URL('../../../docs/client/contract-suite.md', import.meta.url), 'utf8')
  expect(page.slice(page.indexOf('### '))).toBe(`${caseList()}\n`)
})

test('docs/client/contract-suite.md shows the current numbers of vectors and cases', () => {
  const page = readFileSync(new URL('../../../docs/client/contract-suite.md', import.meta.url), 'utf8')
  const cases = contractCases.length
  expect(page).toContain(
    `${vectorCases.length} of ${vectorCases.length} vectors passed\n${cases - 1} of ${cases} contract`,
  )
})

test('gives each case a unique name', () => {
  const names = contractCases.map(({ name }) => name)
  expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
})
