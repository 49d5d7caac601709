/**
 * Stores the progress of an import, so that a later run can resume the import after an interruption. The progress is written before the
 * first batch is sent. The progress applies only to runs with the same file content, service, organization and flags. Other runs start from
 * the beginning.
 */

import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { z } from 'zod'

const state = z.object({
  /** The prefix of the idempotency keys. Sending a batch again with the same key returns the same response. */
  run: z.string(),
  /** The start of the import. Durations such as `30d` count from this time, so that a repeated batch is the same request. */
  begunMs: z.int(),
  batches: z.int(),
  created: z.int(),
  skipped: z.int(),
})
export type ProgressState = z.infer<typeof state>

export interface Progress {
  /** The progress of an interrupted run, or null. */
  readonly earlier: ProgressState | null
  readonly save: (next: ProgressState) => Promise<void>
  readonly done: () => Promise<void>
}

export const newRun = (): string => randomUUID()
export const freshProgress = (nowMs: number): ProgressState => ({
  run: newRun(),
  begunMs: nowMs,
  batches: 0,
  created: 0,
  skipped: 0,
})

/** Opens the progress of an import. `scope` contains everything, except the bytes of the file, that distinguishes two imports. */
export async function openProgress(home: string, path: string, scope: object): Promise<Progress> {
  const hash = createHash('sha256').update(JSON.stringify(scope))
  for await (const chunk of createReadStream(path)) if (chunk instanceof Buffer) hash.update(chunk)
  const folder = join(home, '.keyward', 'imports')
  const file = join(folder, `${hash.digest('hex').slice(0, 32)}.json`)
  const earlier = await readFile(file, 'utf8').then(
    (text) => state.safeParse(JSON.parse(text)).data ?? null,
    () => null,
  )
  return {
    earlier,
    save: async (next) => {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFile(`${file}.unfinished`, JSON.stringify(next), { mode: 0o600 })
      await rename(`${file}.unfinished`, file)
    },
    done: () => rm(file, { force: true }),
  }
}
