/**
 * A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file. The id therefore survives
 * changes of the firmware, the hardware and the name of the machine, and a restart of a container with a volume.
 */

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
} from 'node:crypto'
import { link, mkdir, open, readFile, realpath, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface MachineKey {
  /** The id for the option `machineId`: `mk1_` and the SHA-256 of the public key in base64url. */
  machineId: string
  /** Whether this call has created the key. */
  isNew: boolean
  /**
   * Whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a container or in
   * memory. Then the next start needs another slot. Always false on systems other than Linux.
   */
  isEphemeral: boolean
}

const EPHEMERAL = new Set(['overlay', 'aufs', 'tmpfs', 'ramfs'])

/**
 * Returns the key of this machine from the file at `path`, and creates it if the file is missing. Only the owner can read the file. Several
 * processes that start at the same time get the same key. Rejects when the file cannot be created, or does not contain an Ed25519 key.
 */
export async function machineKey(path: string): Promise<MachineKey> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const known = await readKey(path)
  const isNew = known === null && (await create(path))
  const key = known ?? (await readKey(path))
  if (key === null) throw new Error(`The machine key ${path} was deleted while it was read.`)
  const publicKey = Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x ?? '', 'base64url')
  const machineId = `mk1_${createHash('sha256').update(publicKey).digest('base64url')}`
  return { machineId, isNew, isEphemeral: isEphemeral(await realpath(folder), await readMounts()) }
}

async function readKey(path: string): Promise<KeyObject | null> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  let key: KeyObject | null = null
  try {
    key = createPrivateKey(text)
  } catch {
    // The error of OpenSSL does not name the file.
  }
  if (key?.asymmetricKeyType === 'ed25519') return key
  throw new Error(
    `The file ${path} does not contain a machine key. Delete it to create a new one, which needs another slot.`,
  )
}

/** Creates the file, complete and flushed to the disk. Returns false if another process has created it meanwhile. */
async function create(path: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
      await file.sync()
    } finally {
      await file.close()
    }
    // Unlike a rename, a link never replaces the key of another process.
    await link(draft, path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function readMounts(): Promise<string> {
  try {
    return await readFile('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/** Returns whether a folder is in a file system that does not outlive a container or a restart. `mounts` is the text of /proc/self/mountinfo. */
export function isEphemeral(folder: string, mounts: string): boolean {
  let deepest = { point: '', type: '' }
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const point = before
      .split(' ')[4]
      ?.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))
    if (point === undefined || point.length < deepest.point.length) continue
    // Of two mounts at the same place, the later one is visible.
    if (point === '/' || folder === point || folder.startsWith(`${point}/`))
      deepest = { point, type: after.split(' ')[0] ?? '' }
  }
  return EPHEMERAL.has(deepest.type)
}
