/** The cases of machine keys: the hash of a key pair, which the client creates once and keeps in a file. */

import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { isEphemeral } from '../../src/machine-key.ts'
import { ClientProgram } from '../protocol.ts'
import { requireEqual, requireFields, type World } from '../world.ts'
import type { Scenario } from './scenario.ts'

const IN_MEMORY = '/dev/shm'
const MOUNTS = '/proc/self/mountinfo'

const keyIn = ({ folder }: World): string => join(folder, 'keys', 'machine.key')

/** Returns the machine id of a private key in PEM. */
function idOf(key: string): string {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return `mk1_${createHash('sha256').update(Buffer.from(x, 'base64url')).digest('base64url')}`
}

export const machineKeyScenarios: readonly Scenario[] = [
  {
    name: 'a key is created once, in a new folder and in a file that only its owner can read',
    async run(world) {
      const path = keyIn(world)
      const created = await world.program.send({ command: 'machineKey', path })
      const machineId = idOf(await readFile(path, 'utf8'))
      requireFields('the first call', created, { machineId, isNew: true })
      requireFields('the second call', await world.program.send({ command: 'machineKey', path }), {
        machineId,
        isNew: false,
      })
      requireEqual('the folder', await readdir(dirname(path)), ['machine.key'])
      if (process.platform !== 'win32') requireEqual('the mode', (await stat(path)).mode & 0o777, 0o600)
    },
  },
  {
    name: 'a key that another client has created is used',
    async run(world) {
      const path = keyIn(world)
      const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      await mkdir(dirname(path))
      await writeFile(path, key)
      const found = await world.program.send({ command: 'machineKey', path })
      requireFields('machineKey', found, { machineId: idOf(key), isNew: false })
    },
  },
  {
    name: 'a file without an Ed25519 key is an error that names the file, and is not replaced',
    async run(world) {
      const path = keyIn(world)
      await mkdir(dirname(path))
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      for (const text of ['', 'not a key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()]) {
        await writeFile(path, text)
        const { error } = await world.program.send({ command: 'machineKey', path })
        if (typeof error !== 'string' || !error.includes(path))
          throw new Error(`The error must name the file; got ${JSON.stringify(error)}.`)
        requireEqual('the file', await readFile(path, 'utf8'), text)
      }
    },
  },
  {
    name: 'programs that start at the same time get the same key, and one of them creates it',
    async run(world) {
      const path = keyIn(world)
      const others = [1, 2].map(() => new ClientProgram(world.command))
      const programs = [world.program, ...others]
      try {
        const keys = await Promise.all(programs.map((program) => program.send({ command: 'machineKey', path })))
        requireEqual('the number of ids', new Set(keys.map(({ machineId }) => machineId)).size, 1)
        requireEqual('the number of new keys', keys.filter(({ isNew }) => isNew).length, 1)
      } finally {
        for (const program of others) program.stop()
      }
    },
  },
  {
    name: 'a key in memory or in a layer of a container is ephemeral, and a key on a disk is not',
    missing: () => (process.platform === 'linux' ? null : 'requires Linux'),
    async run(world) {
      const memory = await mkdtemp(join(IN_MEMORY, 'keyward-'))
      try {
        const mounts = await readFile(MOUNTS, 'utf8')
        for (const folder of [memory, await realpath(world.folder)]) {
          const reply = await world.program.send({ command: 'machineKey', path: join(folder, 'machine.key') })
          requireFields(folder, reply, { isEphemeral: isEphemeral(folder, mounts) })
        }
      } finally {
        await rm(memory, { recursive: true })
      }
    },
  },
]
