/**
 * Assigns cores. A server that is measured never shares its core with the load generator; Postgres gets its own core
 * where there are three. Without taskset (macOS) nothing is pinned.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

export interface CorePlan {
  /** Cores of the server that is measured. */
  server: number[]
  /** Cores of the load generator and of this program. */
  load: number[]
  postgres: number[]
  /** False if the system schedules every process on any core. */
  pinned: boolean
  /**
   * Whether the generator has priority over everything else on its core. A generator that waits while Postgres writes
   * makes the server look slow. Needs root; true only where Postgres has no core of its own.
   */
  loadFirst: boolean
}

/** The lowest real-time priority, which is above that of all ordinary programs. */
const FIRST = ['--rr', '1']

/** Read once: later this program is pinned itself. */
const AVAILABLE = availableCores()

/** Plans `workers` cores for the server, the others for load and Postgres. Throws where the machine has too few. */
export function planCores(workers = 1, available = AVAILABLE, pinned = hasTaskset()): CorePlan {
  const server = available.slice(0, workers)
  const rest = available.slice(workers)
  if (rest.length === 0) {
    throw new Error(
      `${workers} worker${workers === 1 ? '' : 's'} and a load generator need ${workers + 1} cores; this machine has ${available.length}`,
    )
  }
  const isShared = rest.length === 1
  const loadFirst = isShared && pinned && run('chrt', [...FIRST, 'true'])
  return { server, load: isShared ? rest : rest.slice(0, -1), postgres: rest.slice(-1), pinned, loadFirst }
}

/** Returns the words before a command that run it on these cores. */
export function pinPrefix(cores: readonly number[], plan: CorePlan): string[] {
  return plan.pinned ? ['taskset', '-c', cores.join(',')] : []
}

/** Returns the words before the command of a load generator. */
export function loadPrefix(plan: CorePlan): string[] {
  return [...(plan.loadFirst ? ['chrt', ...FIRST] : []), ...pinPrefix(plan.load, plan)]
}

/** Runs `work` with the priority of a generator. */
export async function asGenerator<T>(plan: CorePlan, work: () => Promise<T>): Promise<T> {
  const own = ['--all-tasks', '--pid']
  if (plan.loadFirst) run('chrt', [...own, ...FIRST, String(process.pid)])
  try {
    return await work()
  } finally {
    if (plan.loadFirst) run('chrt', [...own, '--other', '0', String(process.pid)])
  }
}

/** Moves a process, its threads and its descendants to these cores. Later children inherit them. */
export function pinTree(pid: number, cores: readonly number[], plan: CorePlan): void {
  if (!plan.pinned) return
  for (const member of [pid, ...descendants(pid)]) {
    try {
      execFileSync('taskset', ['-acp', cores.join(','), String(member)], { stdio: 'ignore' })
    } catch {
      // The process has ended meanwhile.
    }
  }
}

/** Returns the descendants of a process. */
export function descendants(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // The process has ended meanwhile.
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

/** Parses the kernel's core lists: `0-2,5` is 0, 1, 2 and 5. */
export function parseCoreList(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, n) => first + n)
  })
}

function hasTaskset(): boolean {
  return run('taskset', ['-cp', String(process.pid)])
}

/** Returns whether the command exists and ends with 0. */
function run(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
