import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { isEphemeral } from '../src/machine-key.ts'
import { machineKey } from '../src/node.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-machine-key-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('creates the key once, in a file that only its owner can read', async () => {
  const path = join(folder, 'deep', 'machine.key')
  const first = await machineKey(path)
  expect(first).toMatchObject({ machineId: expect.stringMatching(/^mk1_[\w-]{43}$/) as unknown, isNew: true })
  expect(await machineKey(path)).toEqual({ ...first, isNew: false })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(folder, 'deep'))).toEqual(['machine.key'])
  expect((await machineKey(join(folder, 'other.key'))).machineId).not.toBe(first.machineId)
})

test('gives concurrent calls the same key, and reports one as new', async () => {
  const path = join(folder, 'shared.key')
  const keys = await Promise.all(Array.from({ length: 20 }, () => machineKey(path)))
  expect(new Set(keys.map((key) => key.machineId)).size).toBe(1)
  expect(keys.filter(({ isNew }) => isNew)).toHaveLength(1)
})

test('does not replace a file that contains something else', async () => {
  const path = join(folder, 'damaged.key')
  for (const text of ['', 'not a key']) {
    await writeFile(path, text)
    await expect(machineKey(path)).rejects.toThrow(`The file ${path} does not contain a machine key.`)
  }
})

test('detects a folder in a layer of a container or in memory', () => {
  const mounts = [
    '22 1 0:21 / / rw,relatime - overlay overlay rw,lowerdir=/a',
    '23 22 0:22 / /dev/shm rw - tmpfs shm rw',
    '24 22 8:1 /volumes/a /var/lib/my\\040app rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '25 22 8:1 / /old rw - tmpfs tmpfs rw',
    '26 22 8:1 / /old rw - ext4 /dev/sda1 rw',
    '',
  ].join('\n')
  expect(isEphemeral('/home/app', mounts)).toBe(true)
  expect(isEphemeral('/dev/shm/app', mounts)).toBe(true)
  expect(isEphemeral('/var/lib/my app', mounts)).toBe(false)
  expect(isEphemeral('/var/lib/my app/state', mounts)).toBe(false)
  expect(isEphemeral('/var/lib/my application', mounts)).toBe(true)
  expect(isEphemeral('/old/app', mounts)).toBe(false)
  expect(isEphemeral('/home/app', '')).toBe(false)
})
