// What processes have used so far, as the kernel counts it. Linux only; elsewhere these figures are left out.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

let tickMs: number | undefined

/** Processor time of a process with all its threads, user and system; null where the kernel does not say. */
export function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name may hold spaces and parentheses; fields count from behind it: utime is the 12th, stime the 13th.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    tickMs ??= 1000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return null
  }
}

/** Memory that the process holds in RAM, shared buffers between its threads counted once; null where the kernel does not say. */
export function residentBytes(pid: number): number | null {
  try {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return match === null ? null : Number(match[1]) * 1024
  } catch {
    return null
  }
}
