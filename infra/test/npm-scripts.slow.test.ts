import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
let folder: string

/** Creates a workspace with the scripts, the lockfile, and an `npx` that records its calls. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keyward-scripts-'))
  for (const name of ['package.json', 'pnpm-lock.yaml']) copyFileSync(join(ROOT, name), join(folder, name))
  // The installation runs pnpm.mjs, which calls npx, and then verify.ts.
  const supplyChain = join(folder, 'infra', 'supply-chain')
  mkdirSync(supplyChain, { recursive: true })
  copyFileSync(join(ROOT, 'infra', 'supply-chain', 'pnpm.mjs'), join(supplyChain, 'pnpm.mjs'))
  writeFileSync(join(supplyChain, 'verify.ts'), '')
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'npx'), '#!/bin/sh\nmkdir -p node_modules && touch installed\n', { mode: 0o755 })
})

afterEach(() => rmSync(folder, { recursive: true }))

/** Creates files that `pnpm install` would create. */
function install(): void {
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
  symlinkSync(process.execPath, join(folder, 'node_modules', '.bin', 'node'))
}

/** Returns whether the script installs the workspace first. */
async function installs(script: string): Promise<boolean> {
  const PATH = [join(folder, 'bin'), process.env['PATH']].join(delimiter)
  await promisify(execFile)('npm', ['run', '--silent', `pre${script}`], { cwd: folder, env: { ...process.env, PATH } })
  return existsSync(join(folder, 'installed'))
}

test('npm run keyward installs nothing when the production packages are installed', async () => {
  install()
  expect(await installs('keyward')).toBe(false)
})

test('npm run keyward installs the packages in a fresh clone', async () => {
  expect(await installs('keyward')).toBe(true)
})

test('npm run keyward installs the packages again when another lockfile was installed', async () => {
  install()
  writeFileSync(join(folder, 'node_modules', '.installed.yaml'), 'of yesterday')
  expect(await installs('keyward')).toBe(true)
})

/** The scripts that do not install the workspace first. The list also contains `keyward`, which the tests above cover. */
const INSTALLS_NOTHING = new Set([
  'setup',
  'pnpm',
  'verify',
  'record:native',
  'migrate',
  'validator',
  'management',
  'keyward',
])
const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')))
const hooks = new Set(Object.keys(scripts).map((name) => `pre${name}`))
const developmentScripts = Object.keys(scripts).filter((name) => !hooks.has(name) && !INSTALLS_NOTHING.has(name))

test('npm test installs the packages in a fresh clone', async () => {
  expect(await installs('test')).toBe(true)
})

test.each(developmentScripts)('npm run %s installs the packages with the script of npm test', (name) => {
  expect(scripts[`pre${name}`]).toBe(scripts['pretest'])
})
