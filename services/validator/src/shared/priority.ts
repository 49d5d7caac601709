import { getPriority, setPriority } from 'node:os'

/**
 * The niceness of the thread that writes the index. With this value, it yields to a thread with checks on the same core, but still receives
 * about a quarter of the core.
 */
const NICENESS = 5

/**
 * Gives checks priority over the recording of checks. On Linux the call affects only the calling thread and the threads that it starts
 * later. The niceness never decreases, because unprivileged processes may not decrease it.
 */
export function yieldToChecks(): void {
  setPriority(Math.max(getPriority(), NICENESS))
}
