/** Writes result files: JSON in bench/results, with the machine and the commit, so that each figure can be traced to a measurement. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

/** Writes `<name>.json` to the folder of `KEYWARD_BENCH_RESULTS` or to `bench/results`. Returns the path. `data` is any JSON value. */
export function writeResult(name: string, data: unknown): string {
  const folder = process.env['KEYWARD_BENCH_RESULTS'] ?? join(import.meta.dirname, '../../results')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${name}.json`)
  const file = {
    name,
    date: new Date().toISOString(),
    machine: describeMachine(),
    node: process.versions.node,
    commit: currentCommit(),
    data,
  }
  writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`)
  return path
}

export function describeMachine() {
  const processors = cpus()
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    platform: `${process.platform}-${process.arch}`,
  }
}

/** Returns the short hash, followed by `+` if packages or services have uncommitted changes, or null outside a repository. */
function currentCommit(): string | null {
  const git = (...args: string[]): string =>
    execFileSync('git', args, {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  try {
    const isDirty = git('status', '--porcelain', '--untracked-files=no', '--', ':/packages', ':/services') !== ''
    return git('rev-parse', '--short', 'HEAD') + (isDirty ? '+' : '')
  } catch {
    return null
  }
}
