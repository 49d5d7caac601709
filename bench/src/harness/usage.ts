/**
 * Reads the processor time and memory of processes from `/proc`, which only Linux has. All functions except
 * `postgresCpuMs` return null elsewhere and for ended processes.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

let tickMs: number | undefined

/** Returns the processor time of a process with all its threads, user and system, in milliseconds. */
export function cpuMs(pid: number): number | null {
  return sumOfTimes(`/proc/${pid}/stat`, [11, 12])
}

/** Returns the processor time of the main thread of a process, user and system, in milliseconds. */
export function mainThreadCpuMs(pid: number): number | null {
  return sumOfTimes(`/proc/${pid}/task/${pid}/stat`, [11, 12])
}

/** Returns the sum of these fields of a `stat` file, which are times, in milliseconds. Field 0 is the first after the name of the process. */
function sumOfTimes(file: string, fields: readonly number[]): number | null {
  try {
    const stat = readFileSync(file, 'utf8')
    // The process name may contain spaces and parentheses. After it, utime and stime are the 12th and 13th field, followed by the times of
    // ended children.
    const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    tickMs ??= 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    return fields.reduce((sum, field) => sum + Number(values[field]), 0) * tickMs
  } catch {
    return null
  }
}

/** Returns the resident memory of a process in bytes. Memory that the threads of the process share counts once. */
export function residentBytes(pid: number): number | null {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return match === null ? null : Number(match[1]) * 1024
  } catch {
    return null
  }
}

/** Returns the processor time of a Postgres server and its running and ended child processes, in milliseconds. */
export function postgresCpuMs(postmaster: number): number {
  const isChild = (pid: number): boolean => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === postmaster
    } catch {
      return false // ended meanwhile
    }
  }
  const pids = readdirSync('/proc').map(Number).filter(isChild)
  return pids.reduce(
    (sum, pid) => sum + (cpuMs(pid) ?? 0),
    sumOfTimes(`/proc/${postmaster}/stat`, [11, 12, 13, 14]) ?? 0,
  )
}
