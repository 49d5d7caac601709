/**
 * Runs wrk with prepared checks, for servers that are faster than the generator in JavaScript. wrk does not read bodies. It counts the
 * responses whose status is not 2xx or 3xx.
 */

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { z } from 'zod'

import {
  BATCH_PATH,
  checkBody,
  checkHeaders,
  checkPath,
  NEW_MACHINE_MARK,
  type ApiVersion,
  type Check,
} from './checks.ts'
import type { LoadOutcome } from './outcome.ts'

interface WrkOptions {
  url: URL
  /** The path of a file from `writeWrkChecks`. */
  checksFile: string
  connections: number
  durationMs: number
  threads?: number
  /**
   * Whether wrk sleeps for a fixed time instead of until a response arrives. A wake-up by a response takes processor time of a server on
   * the same machine.
   */
  naps?: boolean
  /** The words before the command, such as `['taskset', '-c', '1']`. */
  prefix?: readonly string[]
  signal?: AbortSignal | undefined
}

export interface WrkOutcome extends LoadOutcome {
  /**
   * The number of times that wrk slept by the timer because no response was waiting. The number is low if wrk is the bottleneck. The value
   * is null without `naps`.
   */
  naps: number | null
}

const SCRIPT = join(import.meta.dirname, 'wrk.lua')

const wrkResult = z.object({
  requests: z.number(),
  durationUs: z.number(),
  meanUs: z.number(),
  maxUs: z.number(),
  percentilesUs: z.record(z.string(), z.number()),
  naps: z.number().nullable(),
  failures: z.number(),
  errors: z.record(z.string(), z.number()),
})

export function hasWrk(): boolean {
  try {
    execFileSync('sh', ['-c', 'command -v wrk'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Writes the requests into a temporary file for wrk's script, one per line. A request contains one check, or a batch of v2 if `batchSize`
 * exceeds 1. `remove` deletes the file.
 */
export function writeWrkChecks(
  checks: readonly Check[],
  version: ApiVersion,
  batchSize = 1,
): { path: string; remove: () => void } {
  const lines = batchSize === 1 ? checks.map((check) => checkLine(check, version)) : batchLines(checks, batchSize)
  const folder = mkdtempSync(join(tmpdir(), 'keyward-bench-'))
  const path = join(folder, 'checks.tsv')
  writeFileSync(path, lines.join(''), { mode: 0o600 })
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export async function runWrk(options: WrkOptions): Promise<WrkOutcome> {
  const threads = options.threads ?? 1
  const seconds = Math.max(1, Math.round(options.durationMs / 1000))
  const size = ['-t', String(threads), '-c', String(options.connections), '-d', `${seconds}s`]
  const script = ['--latency', '-s', SCRIPT, options.url.origin, '--', options.checksFile, NEW_MACHINE_MARK]
  if (options.naps === true) script.push('naps')
  const [command = 'wrk', ...rest] = [...(options.prefix ?? []), 'wrk', ...size, ...script]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  // On SIGINT wrk ends early and prints its result.
  const stop = (): void => void child.kill('SIGINT')
  options.signal?.addEventListener('abort', stop, { once: true })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  await new Promise<void>((resolve, reject) => child.once('error', reject).once('close', () => resolve()))
  options.signal?.removeEventListener('abort', stop)
  return parseWrk(output)
}

/** Parses the line that the script prints at the end. Throws an Error with wrk's output if the line is missing. */
export function parseWrk(output: string): WrkOutcome {
  const line = output.split('\n').find((candidate) => candidate.startsWith('RESULT '))
  if (line === undefined) throw new Error(`wrk printed no result: ${output.trim().slice(0, 500)}`)
  const result = wrkResult.parse(JSON.parse(line.slice('RESULT '.length)))
  const { requests, meanUs, maxUs, percentilesUs, naps, failures } = result
  const durationMs = result.durationUs / 1000
  return {
    generator: 'wrk',
    requests,
    durationMs,
    perSecond: (requests / durationMs) * 1000,
    latency: { count: requests, meanUs, maxUs, percentilesUs },
    statuses: { '2xx-3xx': requests - failures, ...(failures > 0 ? { '4xx-5xx': failures } : {}) },
    codes: null,
    errors: Object.fromEntries(Object.entries(result.errors).filter(([, count]) => count > 0)),
    targetPerSecond: null,
    naps,
  }
}

/** Returns lines with full batches. A batch contains checks of one organization. */
function batchLines(checks: readonly Check[], batchSize: number): string[] {
  const lines: string[] = []
  for (const group of Map.groupBy(checks, ({ apiKey }) => apiKey).values())
    for (let at = 0; at + batchSize <= group.length; at += batchSize) {
      const batch = group.slice(at, at + batchSize)
      const body = `{"checks":[${batch.map((check) => checkBody(check, 'v2')).join(',')}]}`
      lines.push(lineOf(BATCH_PATH, batch[0]!, body))
    }
  return lines
}

function checkLine(check: Check, version: ApiVersion): string {
  return lineOf(checkPath(version), check, checkBody(check, version))
}

function lineOf(path: string, check: Check, body: string): string {
  const headers = Object.entries(checkHeaders(check)).map(([name, value]) => `${name}=${value}`)
  const line = [path, headers.join('|'), body]
  if (line.some((field) => /[\t\n\r]/.test(field)))
    throw new Error('a check for wrk cannot contain a tab or a line break')
  return `${line.join('\t')}\n`
}
