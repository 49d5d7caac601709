import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { HTTP_LIBRARY } from '../src/index.ts'
import { isLibrary, loadNewest, RELEASES } from '../src/load.ts'

const isText = (value: unknown): value is string => typeof value === 'string'
const newer = { choice: 'current', name: 'library 2', closesAfterHead: true, load: () => Promise.resolve('two') }
const older = { choice: 'previous', name: 'library 1', closesAfterHead: false, load: () => Promise.resolve('one') }
const failing = (message: string) => () => Promise.reject(new Error(message))

describe('loadNewest', () => {
  test('loads only the newest release', async () => {
    const unused = { ...older, load: failing('loaded in vain') }
    expect(await loadNewest(undefined, isText, [newer, unused])).toEqual({
      library: 'two',
      release: 'library 2',
      closesAfterHead: true,
      notLoaded: [],
    })
  })

  test('loads the older release on a machine that cannot load the newer one, and returns the cause', async () => {
    const message = "This version supports other systems.\n\nError: version `GLIBC_2.38' not found\nRequire stack:\n"
    const loaded = await loadNewest('', isText, [{ ...newer, load: failing(message) }, older])
    expect(loaded).toEqual({
      library: 'one',
      release: 'library 1',
      closesAfterHead: false,
      notLoaded: ["library 2 cannot be loaded: Error: version `GLIBC_2.38' not found"],
    })
  })

  test('loads the older release when the newer one lacks a function', async () => {
    const loaded = await loadNewest(undefined, isText, [{ ...newer, load: () => Promise.resolve(2) }, older])
    expect(loaded).toMatchObject({ library: 'one', notLoaded: ['library 2 lacks functions that Keyward uses.'] })
  })

  test('loads only the chosen release, or rejects', async () => {
    expect(await loadNewest('previous', isText, [newer, older])).toMatchObject({ release: 'library 1', notLoaded: [] })
    await expect(loadNewest('current', isText, [{ ...newer, load: failing('no file') }, older])).rejects.toThrow(
      /^library 2 cannot be loaded: no file$/,
    )
    await expect(loadNewest('latest', isText, [newer, older])).rejects.toThrow(
      'UWEBSOCKETS_RELEASE must be current or previous; got "latest".',
    )
  })

  test('rejects with every cause when no release can be loaded', async () => {
    const releases = [
      { ...newer, load: failing('no library 2') },
      { ...older, load: failing('no library 1') },
    ]
    await expect(loadNewest(undefined, isText, releases)).rejects.toThrow(
      'library 2 cannot be loaded: no library 2\nlibrary 1 cannot be loaded: no library 1',
    )
  })
})

test('the names of the releases contain the versions of the catalog', () => {
  const catalog = readFileSync(new URL('../../../pnpm-workspace.yaml', import.meta.url), 'utf8')
  const [, current] = /"@uwsjs\/core": ([\d.]+)/.exec(catalog) ?? []
  const [, previous] = /uWebSockets\.js: npm:uws-pack@([\d.]+)/.exec(catalog) ?? []
  expect(RELEASES.map(({ name }) => name)).toEqual([
    `uWebSockets.js ${current}`,
    `uWebSockets.js of uws-pack ${previous}`,
  ])
})

test('loads a release on this machine, and HTTP_LIBRARY names it', async () => {
  const loaded = await loadNewest(process.env['UWEBSOCKETS_RELEASE'], isLibrary)
  expect(loaded).toMatchObject(HTTP_LIBRARY)
  expect(RELEASES.map(({ name }) => name)).toContain(HTTP_LIBRARY.release)
  expect(isLibrary({ App: () => undefined })).toBe(false)
  expect(isLibrary(null)).toBe(false)
})
