/**
 * The program of `npm run test:http-libraries`: runs the tests of the transport on the previous release of uWebSockets.js, and on the
 * current one with Node 22, 24 and 26. Prints one line for each combination. Arguments are passed to vitest.
 */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { z } from 'zod'

import { currentRuntimes, type Runtime, workspaceRuntime } from './runtimes.ts'

const countsSchema = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), numPendingTests: z.int() })
const ROOT = join(import.meta.dirname, '../..')
const CONFIG = join(ROOT, 'vitest.transport.config.ts')
const ADAPTER = join(ROOT, 'packages/uwebsockets/src/index.ts')

/** Returns the release of the library and of Node, as the runtime itself reports them. */
function describeRuntime({ node, env }: Runtime): string {
  const program = `console.log((await import(${JSON.stringify(ADAPTER)})).HTTP_LIBRARY.release + ', Node ' + process.versions.node); process.exit()`
  const ran = spawnSync(node, ['--input-type=module', '-e', program], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  if (ran.status !== 0) throw new Error(`${node}: ${ran.stderr}`)
  return ran.stdout.trim()
}

/** Runs the tests and returns one line with the counts. */
function test({ node, env }: Runtime): { line: string; passed: boolean } {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-transport-'))
  const results = join(folder, 'results.json')
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`]
  try {
    const args = [vitest, 'run', '--config', CONFIG, ...reporters, ...process.argv.slice(2)]
    const { status } = spawnSync(node, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: 'inherit' })
    const counts = countsSchema.parse(JSON.parse(readFileSync(results, 'utf8')))
    const line = `${counts.numPassedTests} passed, ${counts.numFailedTests} failed, ${counts.numPendingTests} skipped`
    return { line, passed: status === 0 }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const current = currentRuntimes()
const lines = typeof current === 'string' ? [current] : []
for (const runtime of [workspaceRuntime(), ...(typeof current === 'string' ? [] : current)]) {
  const name = describeRuntime(runtime)
  process.stdout.write(`\n${name}\n`)
  const { line, passed } = test(runtime)
  lines.push(`${name}: ${line}`)
  if (!passed) process.exitCode = 1
}
process.stdout.write(`\n${lines.join('\n')}\n`)
