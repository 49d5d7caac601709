/** Runs the program in this process as a shell would, and keeps what it says. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { run } from '../src/program.ts'

export interface Said {
  code: number
  out: string
  err: string
}

export interface Desk {
  folder: string
  env: Record<string, string>
  /** The clock of the next run is so much ahead of the real one. */
  clock: { aheadMs: number }
  write: (name: string, content: string | Uint8Array) => Promise<void>
  cli: (...args: string[]) => Promise<Said>
  clear: () => Promise<void>
}

/** A folder of its own, which is also where `.keyward/` would lie. */
export async function openDesk(): Promise<Desk> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-cli-'))
  const env: Record<string, string> = {}
  const clock = { aheadMs: 0 }
  return {
    folder,
    env,
    clock,
    write: (name, content) => writeFile(join(folder, name), content),
    clear: () => rm(folder, { recursive: true }),
    cli: async (...args) => {
      const said = { code: 0, out: '', err: '' }
      const streams = {
        out: (text: string) => void (said.out += text),
        err: (text: string) => void (said.err += text),
        isTerminal: false,
      }
      said.code = await run(args, { env, streams, home: folder, folder, nowMs: () => Date.now() + clock.aheadMs })
      return said
    },
  }
}
