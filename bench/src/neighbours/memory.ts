import { readFileSync } from 'node:fs'

import { descendants } from '../harness/cores.ts'
import { residentBytes } from '../harness/usage.ts'

const MIB = 2 ** 20

/** Returns the resident memory of a process in MiB, or 0 if the process has ended. */
export function residentMib(pid: number): number {
  return Math.round((residentBytes(pid) ?? 0) / MIB)
}

/** Returns the memory of Postgres in MiB: the unshared part of each process, and the largest shared part once. */
export function postgresMib(pid: number): number {
  let shared = 0
  let own = 0
  for (const member of [pid, ...descendants(pid)]) {
    const status = readStatus(member)
    own += (status['RssAnon'] ?? 0) + (status['RssFile'] ?? 0)
    shared = Math.max(shared, status['RssShmem'] ?? 0)
  }
  return Math.round((own + shared) / 1_024)
}

/** Returns the fields of `/proc/<pid>/status` in KiB. Returns no fields if the process has ended. */
function readStatus(pid: number): Record<string, number> {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Object.fromEntries([...text.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name, kib]) => [name, Number(kib)]))
  } catch {
    return {}
  }
}
