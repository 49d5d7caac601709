/** Reads the processor time and memory of processes from the kernel. Linux only; null elsewhere. */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

let tickMs: number | undefined

/** Returns the processor time of a process with all its threads, user and system, in milliseconds. */
export function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The process name may contain spaces and parentheses. After the name, utime is the 12th field and stime the 13th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    tickMs ??= 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return null
  }
}

/** Returns the resident memory of a process in bytes. Memory that its threads share counts once. */
export function residentBytes(pid: number): number | null {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return match === null ? null : Number(match[1]) * 1024
  } catch {
    return null
  }
}
