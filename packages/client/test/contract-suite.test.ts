import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { caseList } from '../contract-suite/document.ts'
import { contractCases, vectorCases } from '../contract-suite/suite.ts'

test('the README of the suite shows the current numbers of vectors and cases', () => {
  const page = readFileSync(new URL('../contract-suite/README.md', import.meta.url), 'utf8')
  const cases = contractCases.length
  expect(page).toContain(
    `${vectorCases.length} of ${vectorCases.length} vectors passed\n${cases - 1} of ${cases} contract`,
  )
})

test('the list contains every case', () => {
  const rows = caseList()
    .split('\n')
    .filter((line) => /^(?:- |\| `)/.test(line))
  const missing = contractCases.filter(({ name }) => !rows.some((row) => row.includes(name.replace(/^[a-z ]+: /, ''))))
  expect(missing).toEqual([])
  expect(rows).toHaveLength(contractCases.length)
})

test('gives each case a unique name', () => {
  const names = contractCases.map(({ name }) => name)
  expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
})
