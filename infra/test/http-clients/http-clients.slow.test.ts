/**
 * Sends checks with common HTTP clients, in every form that they can send, over every path to a validator. Writes the table in
 * docs/client/http-clients.md if HTTP_CLIENTS_TABLE is `write`. The case of 30 idle seconds runs only with KEYWARD_LONG.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { type Case, CASES, CLIENTS, preparePrograms, type Result, runClients } from './clients.ts'
import { type Paths, startPaths } from './paths.ts'
import { tableOf } from './table.ts'

const DOCUMENT = new URL('../../../docs/client/http-clients.md', import.meta.url)
const IDLE_SECONDS = process.env['KEYWARD_LONG'] ? 30 : 0
const folder = mkdtempSync(join(tmpdir(), 'keyward-http-clients-'))

let paths: Paths
let results: Result[]

beforeAll(async () => {
  const commands = await preparePrograms(folder)
  paths = await startPaths()
  results = await runClients(paths, IDLE_SECONDS, commands)
  if (process.env['HTTP_CLIENTS_TABLE'] === 'write') writeTable()
}, 600_000)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await paths.close()
})

function writeTable(): void {
  const text = readFileSync(DOCUMENT, 'utf8')
  const start = text.indexOf('| Client |')
  const end = text.indexOf('\n\n', start)
  writeFileSync(DOCUMENT, text.slice(0, start) + tableOf(results).join('\n') + text.slice(end))
}

const EXPECTED: Record<Case, string> = {
  length: '200',
  chunked: '200',
  expect: '200',
  reuse: '200',
  http10: '200',
  gzip: '415',
  bom: '200',
  large: '413',
  idle: '200',
}

/**
 * Returns the result that is expected instead of the one in EXPECTED, or null. No setting of a validator changes these results
 * (docs/api.md#h8).
 */
function exceptionFor({ client, path, case: name }: Result): string | null {
  if (path !== 'direct') return null
  if (name === 'http10') return '505'
  // The client sends `100-Continue`, which uWebSockets.js does not recognize, and waits for the response without a limit.
  if (name === 'expect' && client === 'Java HttpClient') return 'hangs'
  // This client neither detects the closed connection nor opens another one.
  if (name === 'idle' && client === 'Python http.client') return 'closed'
  return null
}

describe.each(CLIENTS)('%s', (client) => {
  test.for(CASES)('gets the expected result over every path: %s', (name, { skip }) => {
    const found = results.filter((one) => one.client === client && one.case === name)
    skip(found.length === 0, 'not installed, or the client cannot send this')
    expect(found.map(({ path }) => path)).toEqual([...paths.urls.keys()])
    for (const one of found)
      expect([one.path, one.received.replace(/^error.*/, 'closed'), one.received]).toEqual([
        one.path,
        exceptionFor(one) ?? EXPECTED[name],
        one.received,
      ])
  })
})

test('the table in docs/client/http-clients.md contains these results', () => {
  const text = readFileSync(DOCUMENT, 'utf8')
  const lines = tableOf(results)
  const start = text.indexOf('| Client |')
  const end = text.indexOf('\n\n', start)
  const cellsOf = (line: string): string[] => line.split('|').map((cell) => cell.trim())
  const written = new Map(
    text
      .slice(start, end)
      .split('\n')
      .map((line) => [cellsOf(line)[1], cellsOf(line)]),
  )
  const hasAllPaths = paths.urls.size === 4
  const differing = lines.slice(2).filter((line) => {
    const before = written.get(cellsOf(line)[1])
    return hasAllPaths && cellsOf(line).some((cell, index) => cell !== '–' && cell !== before?.[index])
  })
  expect(differing).toEqual([])
})
