/**
 * Assigns cores. A measured server never shares its core with the load generator. Postgres has a core of its own if the server leaves at
 * least two. Without taskset (macOS), no process is pinned.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

export interface CorePlan {
  /** The cores of the measured server. */
  server: number[]
  /** The cores of the load generator and of this program. */
  load: number[]
  postgres: number[]
  /** Whether processes are pinned to cores, which requires taskset. */
  pinned: boolean
  /**
   * Whether the generator has priority over other processes on its core, because its delays would count as the server's. The value is true
   * only for root, and only if Postgres shares the core.
   */
  loadFirst: boolean
}

/** The arguments of `chrt` for the lowest real-time priority, which is above that of all ordinary programs. */
const FIRST = ['--rr', '1']

/** The cores of this process at its start, before it is pinned to some of them. */
const AVAILABLE = availableCores()

/** Assigns `workers` cores to the server, and the others to the load generator and Postgres. Throws if the machine has too few cores. */
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

/** Returns the words that, before a command, run it on these cores. */
export function pinPrefix(cores: readonly number[], plan: CorePlan): string[] {
  return plan.pinned ? ['taskset', '-c', cores.join(',')] : []
}

/** Returns the words that, before the command of a load generator, pin it and give it priority. */
export function loadPrefix(plan: CorePlan): string[] {
  return [...(plan.loadFirst ? ['chrt', ...FIRST] : []), ...pinPrefix(plan.load, plan)]
}

/** Gives this process the priority of a load generator while `work` runs. */
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

/** Returns the process ids of the descendants of a process. */
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
    // Only Linux has this file.
  }
  return Array.from({ length: availableParallelism() }, (_, core) => core)
}

/** Parses a core list in the format of the kernel. For example, `0-2,5` is 0, 1, 2 and 5. */
export function parseCoreList(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, n) => first + n)
  })
}

function hasTaskset(): boolean {
  return run('taskset', ['-cp', String(process.pid)])
}

/** Returns whether the command exists and exits with 0. */
function run(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
