/**
 * What a start on one machine remembers in `.keyward/`: the secrets of this installation and the demo organization.
 * `state.json` is what later starts read and always whole; `demo.json` is made from it for people and scripts.
 * The folder is for its owner only.
 */
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

import { ConfigError } from '@keyward/process'
import { z } from 'zod'

import { Demo, DemoState } from '../shared/demo.ts'

export const FOLDER = '.keyward'

const State = z.object({ operatorToken: z.string(), masterKey: z.string(), demo: DemoState.optional() })
export type State = z.infer<typeof State>

/** `demo.json`: everything that is needed to use this installation. */
export const DemoFile = Demo.extend({
  baseUrl: z.url(),
  validatorUrl: z.url(),
  managementUrl: z.url(),
  operatorToken: z.string(),
  /** Of the embedded superuser, or DATABASE_URL. */
  databaseUrl: z.url(),
})
export type DemoFile = z.infer<typeof DemoFile>

export interface StateStore {
  readonly state: State
  /** Replaces the demo part on disk before it resolves. */
  saveDemo(demo: DemoState): Promise<void>
  writeDemoFile(file: DemoFile): Promise<void>
}

/** Opens the folder below `parent`, and creates it with new secrets the first time. */
export async function openState(parent: string): Promise<StateStore> {
  const folder = join(parent, FOLDER)
  const path = join(folder, 'state.json')
  const state = await readOrMakeState(folder, path).catch((error: unknown) => {
    throw explainFolder(folder, error)
  })
  let { demo } = state
  const secrets = state
  return {
    get state() {
      return demo === undefined ? secrets : { ...secrets, demo }
    },
    async saveDemo(next) {
      demo = next
      await replaceFile(path, { ...secrets, demo })
    },
    writeDemoFile: (file) => replaceFile(join(folder, 'demo.json'), file),
  }
}

async function readOrMakeState(folder: string, path: string): Promise<State> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  const found = await readState(path)
  if (found !== null) return found
  const made = { operatorToken: randomBytes(32).toString('base64url'), masterKey: randomBytes(32).toString('base64') }
  await replaceFile(path, made)
  return made
}

/** What can be done where the folder cannot be used. */
function explainFolder(folder: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return new ConfigError(`${folder} has to be a folder; remove the file, or start in another folder`)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new ConfigError(`${folder} cannot be used by this user; start as its owner, or in a folder of your own`)
  return error
}

/** Null when there is none. A damaged one is never replaced: the signing keys in the database need its master key. */
async function readState(path: string): Promise<State | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  try {
    return State.parse(JSON.parse(text))
  } catch {
    throw new ConfigError(
      `${path} is damaged; bring it back from a backup, or remove the folder ${FOLDER} to begin anew`,
    )
  }
}

/** Writes beside the file and renames, so that a reader, or the next start after a crash, finds the old or the new. */
async function replaceFile(path: string, value: object): Promise<void> {
  const unfinished = `${path}.unfinished`
  const file = await open(unfinished, 'w', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(unfinished, path)
}
