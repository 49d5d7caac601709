/** Tests that the file contains one complete text at any time, and that only its owner can read it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, expect, test } from 'vitest'

import { fileStorage } from '../src/node.ts'
import { startWorld } from './setup.ts'

const folder = await mkdtemp(join(tmpdir(), 'keyward-storage-'))
afterAll(() => rm(folder, { recursive: true }))

const MODE = 0o777

test('reads null before the first write, and then the last text', async () => {
  const storage = fileStorage(join(folder, 'first.json'))
  expect(await storage.read()).toBeNull()
  await storage.write('one')
  await storage.write('two')
  expect(await storage.read()).toBe('two')
})

test('creates the file and its folder with access for the owner only', async () => {
  const path = join(folder, 'new', 'deep', 'license.json')
  await fileStorage(path).write('text')
  expect((await stat(path)).mode & MODE).toBe(0o600)
  expect((await stat(join(folder, 'new'))).mode & MODE).toBe(0o700)
})

test('a write removes the read permission of other users', async () => {
  const path = join(folder, 'open.json')
  await writeFile(path, 'old', { mode: 0o644 })
  await fileStorage(path).write('new')
  expect((await stat(path)).mode & MODE).toBe(0o600)
})

test('returns complete texts during concurrent writes and leaves no temporary file', async () => {
  const texts = ['a'.repeat(50_000), 'b'.repeat(70_000)]
  const path = join(folder, 'busy', 'license.json')
  const storage = fileStorage(path)
  await storage.write(texts[0] ?? '')
  const writes = Array.from({ length: 40 }, (_, turn) => storage.write(texts[turn % 2] ?? ''))
  const reads = Array.from({ length: 100 }, () => storage.read())
  for (const text of await Promise.all(reads)) expect(texts).toContain(text)
  await Promise.all(writes)
  expect(await readdir(join(folder, 'busy'))).toEqual(['license.json'])
})

test('leaves a complete text when the process is killed during a write', async () => {
  const path = join(folder, 'killed.json')
  const storage = fileStorage(path)
  const module = new URL('../src/node.ts', import.meta.url).href
  const script = `const { fileStorage } = await import(${JSON.stringify(module)})
    const storage = fileStorage(${JSON.stringify(path)})
    for (let turn = 0; ; turn++) { await storage.write(String(turn % 10).repeat(200_000)); if (turn === 1) console.log('ready') }`
  for (const delayMs of [0, 3, 8]) {
    const writer = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(writer.stdout, 'data')
    await sleep(delayMs)
    writer.kill('SIGKILL')
    await once(writer, 'exit')
    const text = (await storage.read()) ?? ''
    expect(text).toHaveLength(200_000)
    expect(new Set(text).size).toBe(1)
  }
})

test('reports an unwritable folder to onStorageError while the check succeeds', async () => {
  const blocked = join(folder, 'a-file')
  await writeFile(blocked, '')
  const errors: unknown[] = []
  const storage = fileStorage(join(blocked, 'license.json'))
  const { client } = await startWorld({ storage, onStorageError: (error) => errors.push(error) })
  expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  await client.settled()
  expect(errors).not.toEqual([])
})
