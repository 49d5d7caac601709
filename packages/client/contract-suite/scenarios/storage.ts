import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { NO_FILE, OFFLINE_VALID, offlineRejection, ONLINE_VALID, requireEqual } from '../world.ts'
import { getFile, restartOffline, restartOnline, type Scenario } from './scenario.ts'

const GARBAGE: readonly (string | Buffer)[] = [
  '',
  'not JSON',
  'null',
  '[]',
  '{"version":2}',
  '{"version":2,"latestSeenMs":"soon","licenses":{"a":1}}',
  '{"version":2,"latestSeenMs":null,"licenses":[null,1,"a",{"licenseKey":1,"file":null}]}',
  Buffer.from([0xff, 0xfe, 0x00, 0x7b]),
]

// Matches the license file in a stored text.
const FILE = /([\w-]{100,}\.)([\w-]{86})/

export const storageScenarios: readonly Scenario[] = [
  {
    name: 'a missing folder is created, and contains only the file, which only its owner can read',
    async run(world) {
      await getFile(world)
      requireEqual('the folder', await readdir(dirname(world.storage)), ['license.json'])
      if (process.platform === 'win32') return
      requireEqual('the mode of the file', (await stat(world.storage)).mode & 0o777, 0o600)
    },
  },
  {
    name: 'a storage with other content counts as empty and is replaced',
    async run(world) {
      await mkdir(dirname(world.storage), { recursive: true })
      for (const garbage of GARBAGE) {
        await writeFile(world.storage, garbage)
        await restartOffline(world, { timeoutMs: 1000 })
        await world.requireResult('validate', NO_FILE)
        await writeFile(world.storage, garbage)
        await restartOnline(world)
        await world.requireResult('validate', ONLINE_VALID)
        await restartOffline(world)
        await world.requireResult('validate', OFFLINE_VALID)
      }
    },
  },
  {
    name: 'a modified stored file is rejected',
    async run(world) {
      await getFile(world)
      const text = await readFile(world.storage, 'utf8')
      const changed = text.replace(FILE, (_, payload: string, signature: string) => {
        const last = signature.slice(0, 10)
        return `${payload}${last === 'AAAAAAAAAA' ? 'BBBBBBBBBB' : 'AAAAAAAAAA'}${signature.slice(10)}`
      })
      if (changed === text) throw new Error('The storage must contain the license file unchanged.')
      await writeFile(world.storage, changed)
      await restartOffline(world)
      await world.requireResult('validate', offlineRejection('BAD_SIGNATURE'))
    },
  },
  {
    name: 'in an edited storage, the file of another license key is rejected',
    async run(world) {
      await getFile(world)
      const text = await readFile(world.storage, 'utf8')
      await writeFile(world.storage, text.replace(world.service.licenseKey, 'K7QX-93FM-TTRW-H2ZE'))
      await restartOffline(world, { licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
      await world.requireResult('validate', offlineRejection('WRONG_LICENSE'))
    },
  },
  {
    name: 'without a working storage, checks succeed online and are rejected offline',
    async run(world) {
      await mkdir(dirname(world.storage), { recursive: true })
      await writeFile(world.storage, 'a file where a folder should be')
      const storage = join(world.storage, 'license.json')
      await world.open({ storage })
      await world.requireResult('validate', ONLINE_VALID)
      world.gateway.fault = { kind: 'drop' }
      await world.requireResult('validate', NO_FILE)
    },
  },
  {
    name: 'the files of ten license keys are stored, and an eleventh replaces the oldest',
    async run(world) {
      const keys = Array.from({ length: 11 }, (_, number) => `acme-${number}`)
      for (const licenseKey of keys) {
        world.service.licenseKey = licenseKey
        await getFile(world, { licenseKey })
      }
      await restartOffline(world, { licenseKey: 'acme-0' })
      await world.requireResult('validate', NO_FILE)
      await world.open({ licenseKey: 'acme-1' })
      await world.requireResult('validate', OFFLINE_VALID)
    },
  },
]
