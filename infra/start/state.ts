/**
 * Stores the state of `npm start` in `.keyward/`: the secrets of this installation and the demo organization. Later starts
 * read `state.json`, which is replaced atomically. `demo.json` is derived from it for users and scripts. Only the owner can
 * read the folder.
 */

import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

import { ConfigError } from '@keyward/runtime'
import { z } from 'zod'

import { demoSchema, type DemoState, demoStateSchema } from '../shared/demo.ts'

export const FOLDER = '.keyward'

const stateSchema = z.object({
  operatorToken: z.string(),
  masterKey: z.string(),
  demo: demoStateSchema.optional(),
  /** The id of the organization that contains the complete demo data. */
  demoDataIn: z.string().optional(),
})
export type State = z.infer<typeof stateSchema>

/** The content of `demo.json`: the addresses and credentials of this installation. */
export const demoFileSchema = demoSchema.extend({
  baseUrl: z.url(),
  validatorUrl: z.url(),
  managementUrl: z.url(),
  operatorToken: z.string(),
  /** KEYWARD_DATABASE_URL, or the address with the superuser of the embedded Postgres. */
  databaseUrl: z.url(),
})
export type DemoFile = z.infer<typeof demoFileSchema>

export interface StateStore {
  readonly state: State
  /** Saves the demo. Resolves when `state.json` is on disk. */
  saveDemo(demo: DemoState): Promise<void>
  /** Saves the id of the organization that contains the complete demo data. */
  saveDemoData(organizationId: string): Promise<void>
  /** Returns the `demo.json` of an earlier start. Returns null if the file is missing or invalid. */
  readDemoFile(): Promise<DemoFile | null>
  writeDemoFile(file: DemoFile): Promise<void>
}

/** Opens `.keyward/` in `parent`, or creates it with new secrets. Throws ConfigError if the folder or its state cannot be used. */
export async function openState(parent: string): Promise<StateStore> {
  const folder = join(parent, FOLDER)
  const path = join(folder, 'state.json')
  const state = await readOrCreateState(folder, path).catch((error: unknown) => {
    throw explainFolder(folder, error)
  })
  let current = state
  const save = async (changed: Partial<State>) => {
    current = { ...current, ...changed }
    await replaceFile(path, current)
  }
  return {
    get state() {
      return current
    },
    saveDemo: (demo) => save({ demo }),
    saveDemoData: (demoDataIn) => save({ demoDataIn }),
    readDemoFile: () => readDemoFile(join(folder, 'demo.json')),
    writeDemoFile: (file) => replaceFile(join(folder, 'demo.json'), file),
  }
}

async function readOrCreateState(folder: string, path: string): Promise<State> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  const found = await readState(path)
  if (found !== null) return found
  const created = {
    operatorToken: randomBytes(32).toString('base64url'),
    masterKey: randomBytes(32).toString('base64'),
  }
  await replaceFile(path, created)
  return created
}

/** Returns a ConfigError with advice if the folder cannot be used, and any other error unchanged. */
function explainFolder(folder: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return new ConfigError(`${folder} must be a folder; remove the file, or start in another folder`)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new ConfigError(`${folder} is not writable by this user; start as its owner, or in another folder`)
  return error
}

/**
 * Reads the state. Returns null if the file does not exist. Throws ConfigError for a damaged file, which must not be
 * replaced, because its master key decrypts the signing keys.
 */
async function readState(path: string): Promise<State | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch {
    throw new ConfigError(`${path} is damaged; restore it from a backup, or remove the folder ${FOLDER} to start over`)
  }
}

async function readDemoFile(path: string): Promise<DemoFile | null> {
  try {
    return demoFileSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch {
    return null
  }
}

/** Writes a temporary file and renames it, so that readers find the old or the new content, also after a crash. */
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
