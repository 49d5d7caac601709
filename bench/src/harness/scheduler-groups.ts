/**
 * Puts the processes of a measurement into separate groups of the scheduler, as containers do. Each group gets its share of the processors,
 * however many processes it contains. Without groups, some kernels give each process of Postgres the share of a whole service.
 */

import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The processor controllers of cgroups v1 and v2: the folder, the file that contains the share of a group, and the default share. */
const CONTROLLERS = [
  { folder: '/sys/fs/cgroup/cpu', file: 'cpu.shares', normal: 1_024 },
  { folder: '/sys/fs/cgroup', file: 'cpu.weight', normal: 100 },
]

export class SchedulerGroups {
  readonly #folders: string[] = []

  /**
   * Moves the processes into a new group. Processes that they start later belong to the group too. `weight` is the share of the group in
   * relation to a normal group. Returns false if the system does not permit groups.
   */
  add(name: string, pids: readonly number[], weight = 1): boolean {
    for (const { folder, file, normal } of CONTROLLERS) {
      const group = join(folder, `keyward-bench-${process.pid}-${name}`)
      try {
        mkdirSync(group)
        this.#folders.push(group)
        if (!existsSync(join(group, file))) continue
        writeFileSync(join(group, file), String(Math.max(2, Math.round(normal * weight))))
        for (const pid of pids) writeFileSync(join(group, 'cgroup.procs'), String(pid))
        return true
      } catch {
        continue
      }
    }
    return false
  }

  /** Removes the groups whose processes have ended. */
  remove(): void {
    for (const folder of this.#folders)
      try {
        rmdirSync(folder)
      } catch {
        // The group still contains a process, or was never created.
      }
  }
}
