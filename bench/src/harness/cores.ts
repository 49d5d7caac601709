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
  /**
   * The generator runs before whatever shares its core: one that waits while Postgres writes would make the server look slow.
   * Takes root, and counts only where Postgres has no core of its own.
   */
  loadFirst: boolean
}

/** The lowest priority above that of ordinary programs. */
const FIRST = ['--rr', '1']

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
  const isShared = rest.length === 1
  const loadFirst = isShared && pinned && run('chrt', [...FIRST, 'true'])
  return { server, load: isShared ? rest : rest.slice(0, -1), postgres: rest.slice(-1), pinned, loadFirst }
}

/** What to put before a command so that it runs on these cores. */
export function pinPrefix(cores: readonly number[], plan: CorePlan): string[] {
  return plan.pinned ? ['taskset', '-c', cores.join(',')] : []
}

/** The same before a generator's command. */
export function loadPrefix(plan: CorePlan): string[] {
  return [...(plan.loadFirst ? ['chrt', ...FIRST] : []), ...pinPrefix(plan.load, plan)]
}

/** Runs `work` while this process is the generator. */
export async function asGenerator<T>(plan: CorePlan, work: () => Promise<T>): Promise<T> {
  const own = ['--all-tasks', '--pid']
  if (plan.loadFirst) run('chrt', [...own, ...FIRST, String(process.pid)])
  try {
    return await work()
  } finally {
    if (plan.loadFirst) run('chrt', [...own, '--other', '0', String(process.pid)])
  }
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
  return run('taskset', ['-cp', String(process.pid)])
}

/** Whether the command could be run and said yes. */
function run(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
