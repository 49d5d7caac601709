// Which core does what. A server that is measured never shares its core with the program that loads it; Postgres gets one
// of its own where there are three. Without taskset (macOS) nothing is pinned, and the report says so.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

export interface CorePlan {
  /** For the server that is measured. */
  server: number[]
  /** For the load generator and this program. */
  load: number[]
  postgres: number[]
  /** False: the system moves everything as it likes. */
  pinned: boolean
}

// Taken once: later this program is pinned itself.
const AVAILABLE = availableCores()

/** `workers` cores for the server, the rest for load and Postgres. Throws where the machine has too few. */
export function planCores(workers = 1, available = AVAILABLE, pinned = hasTaskset()): CorePlan {
  const server = available.slice(0, workers)
  const rest = available.slice(workers)
  if (rest.length === 0) {
    throw new Error(
      `${workers} worker${workers === 1 ? '' : 's'} and a load generator need ${workers + 1} cores, there are ${available.length}`,
    )
  }
  const postgres = rest.length > 1 ? rest.slice(-1) : rest
  return { server, load: rest.length > 1 ? rest.slice(0, -1) : rest, postgres, pinned }
}

/** What to put before a command so that it runs on these cores. */
export function pinPrefix(cores: readonly number[], plan: CorePlan): string[] {
  return plan.pinned ? ['taskset', '-c', cores.join(',')] : []
}

/** Moves a process, its threads and its children; later children follow. */
export function pinTree(pid: number, cores: readonly number[], plan: CorePlan): void {
  if (!plan.pinned) return
  for (const member of [pid, ...descendants(pid)]) {
    try {
      execFileSync('taskset', ['-acp', cores.join(','), String(member)], { stdio: 'ignore' })
    } catch {
      // It ended meanwhile.
    }
  }
}

/** Children of a process, and theirs. */
export function descendants(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended meanwhile.
    }
  }
  const found = [pid]
  for (const parent of found) for (const [child, of] of parents) if (of === parent) found.push(child)
  return found.slice(1)
}

function availableCores(): number[] {
  try {
    const list = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    if (list !== undefined) return parseCoreList(list)
  } catch {
    // Not Linux.
  }
  return Array.from({ length: availableParallelism() }, (_, core) => core)
}

/** `0-2,5` is 0, 1, 2 and 5. */
export function parseCoreList(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, n) => first + n)
  })
}

function hasTaskset(): boolean {
  try {
    execFileSync('taskset', ['-cp', String(process.pid)], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
