/**
 * Writes and reads result files. A result file is JSON in bench/results, with the machine and the commit. The report reads only these
 * files, so each of its figures can be traced to a file.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

/** The folder of `KEYWARD_BENCH_RESULTS`, or `bench/results` by default. */
export const RESULTS_FOLDER = process.env['KEYWARD_BENCH_RESULTS'] ?? join(import.meta.dirname, '../../results')

export interface Machine {
  cpu: string
  cores: number
  memoryGiB: number
  kernel: string
  platform: string
}

export interface ResultFile {
  name: string
  /** The time of the measurement (ISO 8601, UTC). */
  date: string
  machine: Machine
  node: string
  /** The short hash, followed by `+` if packages or services had uncommitted changes, or null outside a repository. */
  commit: string | null
  data: unknown
}

/** Writes `bench/results/<name>.json` and returns its path. `data` is any JSON value. */
export function writeResult(name: string, data: unknown): string {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(name))
    throw new Error(`the name of a result must be lower-case words joined by dashes, got "${name}"`)
  const file: ResultFile = {
    name,
    date: new Date().toISOString(),
    machine: describeMachine(),
    node: process.versions.node,
    commit: currentCommit(),
    data,
  }
  mkdirSync(RESULTS_FOLDER, { recursive: true })
  const path = join(RESULTS_FOLDER, `${name}.json`)
  writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`)
  return path
}

/** Returns all results in the order of their names. Skips JSON files that are not results. */
export function readResults(folder = RESULTS_FOLDER): ResultFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.toSorted().flatMap((name) => {
    const parsed: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    return isResultFile(parsed) ? [parsed] : []
  })
}

export function describeMachine(): Machine {
  const processors = cpus()
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    platform: `${process.platform}-${process.arch}`,
  }
}

function currentCommit(): string | null {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, {
        cwd: import.meta.dirname,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim()
    const dirty = git('status', '--porcelain', '--untracked-files=no', '--', ':/packages', ':/services') !== ''
    return git('rev-parse', '--short', 'HEAD') + (dirty ? '+' : '')
  } catch {
    return null
  }
}

function isResultFile(value: unknown): value is ResultFile {
  if (typeof value !== 'object' || value === null) return false
  return ['name', 'date', 'machine', 'node', 'data'].every((field) => field in value)
}
