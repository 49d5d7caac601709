import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { run } from '../src/program.ts'

export interface CommandResult {
  code: number
  out: string
  err: string
}

export interface TestShell {
  folder: string
  env: Record<string, string>
  /** The time by which the clock of the next run is ahead of the real clock. */
  clock: { aheadMs: number }
  write: (name: string, content: string | Uint8Array) => Promise<void>
  cli: (...args: string[]) => Promise<CommandResult>
  clear: () => Promise<void>
}

/** Creates a folder, and returns functions that run the program in it. The program also stores `.keyward/` there. */
export async function openShell(): Promise<TestShell> {
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
      const result = { code: 0, out: '', err: '' }
      const streams = {
        out: (text: string) => void (result.out += text),
        err: (text: string) => void (result.err += text),
        outIsTerminal: false,
        isTerminal: false,
      }
      result.code = await run(args, { env, streams, home: folder, folder, nowMs: () => Date.now() + clock.aheadMs })
      return result
    },
  }
}
