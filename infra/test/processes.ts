import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RunningProcess {
  pid: number
  parent: number
  command: string
}

export function runningProcesses(): RunningProcess[] {
  return process.platform === 'linux' ? fromProc() : fromPs()
}

function fromProc(): RunningProcess[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      if (/^State:\s+Z/m.test(status)) return []
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      return [{ pid: Number(name), parent: Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]), command }]
    } catch {
      return [] // The process ended between the reads.
    }
  })
}

function fromPs(): RunningProcess[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' }).split('\n')
  return lines.flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)
    return match ? [{ pid: Number(match[1]), parent: Number(match[2]), command: match[3] ?? '' }] : []
  })
}

/** Returns the names of a process's environment variables; undefined where the system does not expose them. */
export function variablesOf({ pid }: RunningProcess): Set<string> | undefined {
  if (process.platform !== 'linux') return undefined
  const lines = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  return new Set(lines.map((line) => line.replace(/=[^]*/, '')))
}

/** Returns the process and its descendants. */
export function familyOf(pid: number): RunningProcess[] {
  const all = runningProcesses()
  const family = all.filter((one) => one.pid === pid)
  for (let i = 0; i < family.length; i++) family.push(...all.filter((one) => one.parent === family[i]?.pid))
  return family
}

/** Resolves when none of the processes runs. After `limitMs`, rejects with those that still run. */
export async function untilGone(processes: readonly RunningProcess[], limitMs = 20_000): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const now = runningProcesses()
    const left = processes.filter((one) => now.some(({ pid, command }) => pid === one.pid && command === one.command))
    if (left.length === 0) return
    if (performance.now() - startedAt > limitMs) throw new Error(`Still running: ${JSON.stringify(left)}`)
    await sleep(25)
  }
}
