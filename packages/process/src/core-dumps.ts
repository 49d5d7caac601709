/**
 * A core dump of a service would hold every secret that it has: keys, tokens, the database's password, and addresses of
 * callers. Whoever runs the services should turn dumps off; where nobody did, this leaves the memory out of them.
 */
import { writeFileSync } from 'node:fs'

/** On Linux. Elsewhere, and where `/proc` may not be written, it does nothing: the limit of the system decides. */
export function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Not Linux, or a container that shows /proc read-only.
  }
}
