/** Runs the program as a user does, against a real server: the ceiling, which sends a VALID response to every request. */

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { startChild, type Child } from '../src/harness/children.ts'

const PROGRAM = fileURLToPath(new URL('../src/programs/bench.ts', import.meta.url))
const CEILING = fileURLToPath(new URL('../src/baselines/ceiling.ts', import.meta.url))
const report = z.object({
  generator: z.string(),
  requests: z.number(),
  targetPerSecond: z.number().nullable(),
  codes: z.record(z.string(), z.number()),
  latency: z.object({ percentilesUs: z.record(z.string(), z.number()) }),
})

let server: Child
beforeAll(async () => {
  server = await startChild({ file: CEILING })
})
afterAll(() => server.stop())

interface Ended {
  code: number
  stdout: string
  stderr: string
}

function bench(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], { env: {} }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr })
    })
  })
}

function load(...args: string[]): Promise<Ended> {
  const target = ['--url', `http://127.0.0.1:${server.port}`, '--api-key', 'kwk_test', '--license', 'AAAA']
  return bench(...target, '--duration', '1', '--connections', '4', ...args)
}

describe('npm run bench', () => {
  test('exits with 3 and names the thresholds that the run misses', async () => {
    const limits = ['--max-p99', '60000', '--max-failures', '0', '--min-rate', '101']
    const { code, stdout, stderr } = await load('--rate', '100', '--json', ...limits)
    expect([code, report.parse(JSON.parse(stdout)).requests]).toEqual([3, 100])
    expect(stderr.match(/^missed: .*/gm)).toEqual([
      expect.stringMatching(/checks a second arrived; --min-rate is 101$/),
    ])
  })

  test('sends at the rate of --rate, prints JSON, and warns about unexpected verdicts', async () => {
    const { code, stdout, stderr } = await load('--rate', '100', '--json', '--mix', 'known=1,unknown=1')
    expect(code).toBe(0)
    const result = report.parse(JSON.parse(stdout))
    expect(result).toMatchObject({
      generator: 'fixed-rate',
      targetPerSecond: 100,
      requests: 100,
      codes: { VALID: 100 },
    })
    expect(stderr).toContain('a check of kind "unknown" got VALID, not NOT_FOUND')
    expect(Object.keys(result.latency.percentilesUs)).toEqual(['50', '75', '90', '99', '99.9', '99.99'])
  })

  test('prints sentences and the figures of both runs without --json', async () => {
    const { code, stdout } = await load()
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^Your validator decided [\d,]+ checks a second\.\nAt half of that, [\d,]+ checks a second, half of the responses arrived within .*, and 99 of 100 within .*\.\n/,
    )
    expect(stdout).toMatch(
      /checks\/s.*as-fast-as-possible\nlatency .*p99\.99.*\ncodes +VALID .*\nstatuses +200 .*\nerrors +none\n\nat half of the peak\n.*fixed-rate\n/,
    )
  })

  test('writes a report that names a missed threshold and needs no script and no other file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-bench-'))
    try {
      const path = join(folder, 'report.html')
      const { code } = await load('--rate', '50', '--ramp-to', '150', '--min-rate', '1000', '--report', path)
      expect(code).toBe(3)
      const page = readFileSync(path, 'utf8')
      expect(page).toContain('Your validator decided all checks while the rate went from 50 to 150 a second.')
      expect(page).toMatch(/class="missed">Missed threshold: [\d,]+ checks a second arrived; --min-rate is 1000</)
      expect(page.match(/aria-label="[^"]+"/g)).toEqual([
        'aria-label="Latency by percentile"',
        'aria-label="Latency over time"',
        'aria-label="Checks a second over time"',
      ])
      expect(page).toContain('VALID: 100 (100.00 %)')
      expect(page).not.toMatch(/<script|<link|src=|url\(|@import|NaN|Infinity|undefined/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('notes, also in the report, that the target is the development gateway', async () => {
    const gateway = createServer((_request, response) => {
      response.setHeader('via', '1.1 keyward-development-gateway').end('{"code":"VALID"}')
    })
    await once(gateway.listen(0, '127.0.0.1'), 'listening')
    const { port } = z.object({ port: z.number() }).parse(gateway.address())
    const url = `http://127.0.0.1:${port}`
    const folder = mkdtempSync(join(tmpdir(), 'keyward-bench-'))
    const path = join(folder, 'report.html')
    try {
      const target = ['--url', url, '--api-key', 'kwk_test', '--license', 'AAAA', '--duration', '1', '--rate', '20']
      const { stderr } = await bench(...target, '--report', path)
      expect(stderr).toContain('note: the target is the development gateway of "npm start"')
      expect(readFileSync(path, 'utf8')).toContain('class="note">Note: the target is the development gateway')
    } finally {
      gateway.close()
      rmSync(folder, { recursive: true })
    }
  })

  test('exits with 2 before the run when the folder of the report does not exist', async () => {
    const { code, stderr } = await load('--report', '/nowhere/report.html')
    expect([code, stderr]).toEqual([2, 'bench: --report: /nowhere/report.html cannot be written\n'])
  })

  test('exits with 2 and prints one line for an invalid argument', async () => {
    const { code, stdout, stderr } = await load('--rate', 'fast')
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toBe('bench: --rate takes a number above 0 and up to 1000000, got "fast"\n')
  })

  test('exits with 1 and prints the address when the server cannot be reached', async () => {
    const { code, stderr } = await bench('--url', 'http://127.0.0.1:1', '--api-key', 'k', '--license', 'A')
    expect(code).toBe(1)
    expect(stderr).toContain('http://127.0.0.1:1 cannot be reached')
  })
})
