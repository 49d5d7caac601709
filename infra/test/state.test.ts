import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { openState } from '../start/state.ts'

let home: string

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'keyward-state-'))
})

afterEach(() => rm(home, { recursive: true }))

const demo = { organizationId: 'o', managementToken: 'kwm_', apiKey: 'kwk_' }

test('creates secrets at the first start and reads them at later starts', async () => {
  const first = await openState(home)
  expect(Buffer.from(first.state.masterKey, 'base64')).toHaveLength(32)
  expect(first.state.operatorToken.length).toBeGreaterThanOrEqual(40)
  expect((await openState(home)).state).toEqual(first.state)
})

test('returns the saved demo at the next start', async () => {
  await (await openState(home)).saveDemo({ ...demo, productId: 'p' })
  expect((await openState(home)).state.demo).toEqual({ ...demo, productId: 'p' })
})

test('creates a folder and files that only their owner can read', async () => {
  const store = await openState(home)
  await store.saveDemo(demo)
  expect((await stat(join(home, '.keyward'))).mode & 0o777).toBe(0o700)
  expect((await stat(join(home, '.keyward', 'state.json'))).mode & 0o777).toBe(0o600)
})

test('keeps the old state when a write was interrupted', async () => {
  const store = await openState(home)
  await writeFile(join(home, '.keyward', 'state.json.unfinished'), '{"operatorTok')
  expect((await openState(home)).state).toEqual(store.state)
})

test('rejects a file in place of the folder with an error that contains advice', async () => {
  await writeFile(join(home, '.keyward'), '')
  await expect(openState(home)).rejects.toThrow(/\.keyward must be a folder; remove the file, or start in another/)
})

test.skipIf(process.getuid?.() === 0)(
  'rejects a folder that is not writable (needs a user other than root)',
  async () => {
    await chmod(home, 0o500)
    await expect(openState(home)).rejects.toThrow(/\.keyward is not writable by this user; start as its owner, or/)
    await chmod(home, 0o700)
  },
)

test('rejects a damaged state file and does not replace it', async () => {
  await openState(home)
  const path = join(home, '.keyward', 'state.json')
  await writeFile(path, '{"operatorToken":')
  await expect(openState(home)).rejects.toThrow(/state\.json is damaged; .* remove the folder \.keyward/)
  expect(await readFile(path, 'utf8')).toBe('{"operatorToken":')
})
