/** Runs the contract suite and the vectors against the client of every language. A missing toolchain skips its client. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, describe, expect, test } from 'vitest'

import { contractCases, runCases, vectorCases } from '../contract-suite/suite.ts'
import { clients } from './clients.ts'

const folder = mkdtempSync(join(tmpdir(), 'keyward-clients-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(clients)('the client for $language', ({ missing, build }) => {
  const reason = missing()

  test.skipIf(reason !== null)(
    `passes all vectors and all contract cases (${reason ?? 'runs here'})`,
    async () => {
      const command = build(folder)
      expect(await failures(command, vectorCases), 'vectors').toEqual([])
      expect(await failures(command, contractCases), 'contract cases').toEqual([])
    },
    240_000,
  )
})

async function failures(command: readonly string[], cases: Parameters<typeof runCases>[1]): Promise<object[]> {
  const results = await runCases(command, cases)
  expect(results).toHaveLength(cases.length)
  return results.filter(({ problem }) => problem !== null)
}
