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

test('the first start makes secrets, later ones find them again', async () => {
  const first = await openState(home)
  expect(Buffer.from(first.state.masterKey, 'base64')).toHaveLength(32)
  expect(first.state.operatorToken.length).toBeGreaterThanOrEqual(40)
  expect((await openState(home)).state).toEqual(first.state)
})

test('what is saved of the demo is there at the next start', async () => {
  await (await openState(home)).saveDemo({ ...demo, productId: 'p' })
  expect((await openState(home)).state.demo).toEqual({ ...demo, productId: 'p' })
})

test('folder and files are for their owner only', async () => {
  const store = await openState(home)
  await store.saveDemo(demo)
  expect((await stat(join(home, '.keyward'))).mode & 0o777).toBe(0o700)
  expect((await stat(join(home, '.keyward', 'state.json'))).mode & 0o777).toBe(0o600)
})

test('a write that was cut short leaves the old state', async () => {
  const store = await openState(home)
  await writeFile(join(home, '.keyward', 'state.json.unfinished'), '{"operatorTok')
  expect((await openState(home)).state).toEqual(store.state)
})

test('a file in the place of the folder is named, and what to do about it', async () => {
  await writeFile(join(home, '.keyward'), '')
  await expect(openState(home)).rejects.toThrow(/\.keyward has to be a folder; remove the file, or start in another/)
})

test.skipIf(process.getuid?.() === 0)(
  'a folder that may not be written is named (needs a user that is not root)',
  async () => {
    await chmod(home, 0o500)
    await expect(openState(home)).rejects.toThrow(/\.keyward cannot be used by this user; start as its owner, or/)
    await chmod(home, 0o700)
  },
)

test('a damaged state is not replaced, because its master key is needed', async () => {
  await openState(home)
  const path = join(home, '.keyward', 'state.json')
  await writeFile(path, '{"operatorToken":')
  await expect(openState(home)).rejects.toThrow(/state\.json is damaged; .* remove the folder \.keyward/)
  expect(await readFile(path, 'utf8')).toBe('{"operatorToken":')
})
