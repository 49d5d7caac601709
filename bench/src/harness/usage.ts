/** Reads the processor time and memory of processes from `/proc`, which only Linux has. Returns null elsewhere and for ended processes. */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

let tickMs: number | undefined

/** Returns the processor time of a process with all its threads, user and system, in milliseconds. */
export function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The process name may contain spaces and parentheses. After it, utime and stime are the 12th and 13th field.
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
    tickMs ??= 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    return (Number(user) + Number(system)) * tickMs
  } catch {
    return null
  }
}

/** Returns the resident memory of a process in bytes. Memory that several threads share is counted once. */
export function residentBytes(pid: number): number | null {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return match === null ? null : Number(match[1]) * 1024
  } catch {
    return null
  }
}
