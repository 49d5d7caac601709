/**
 * When an import began and how far it has come, on disk from the first batch on, so that one that was stopped goes on
 * where it was. It belongs to one file's bytes, one service, one organization and one set of flags; anything else begins
 * anew.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { z } from 'zod'

const state = z.object({
  /** Names the attempt in idempotency keys: a batch whose answer was lost is not counted as skipped when it is sent again. */
  run: z.string(),
  /** When it began. Times such as `30d` count from then, so that a batch sent again is the same request. */
  begunMs: z.int(),
  batches: z.int(),
  created: z.int(),
  skipped: z.int(),
})
export type ProgressState = z.infer<typeof state>

export interface Progress {
  /** What an earlier run left; null when there is none. */
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

/** `scope` is whatever makes two imports different beside the bytes of the file at `path`. */
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
