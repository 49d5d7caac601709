/** Tests the size of the scripts that a browser loads before it shows a screen of the console. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { CONSOLE_FOLDER } from '@keyward/console'
import { expect, test } from 'vitest'

const BUDGET_BYTES = 300_000
const ASSETS = join(CONSOLE_FOLDER, 'assets')

/** Returns a script and all scripts that must be loaded before it runs. */
function closureOf(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found
  found.add(name)
  const code = readFileSync(join(ASSETS, name), 'utf8')
  for (const [, imported = ''] of code.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g))
    closureOf(imported, found)
  return found
}

function compressedBytes(names: Iterable<string>): number {
  return [...names].reduce((sum, name) => sum + readFileSync(join(ASSETS, `${name}.gz`)).length, 0)
}

const entryOf = (page: string): string =>
  /assets\/([\w.-]+\.js)/.exec(readFileSync(join(CONSOLE_FOLDER, page), 'utf8'))?.[1] ?? ''

test('loads less than 300 kB of compressed scripts for any screen', () => {
  const portal = closureOf(entryOf('portal.html'))
  const first = closureOf(entryOf('index.html'))
  const sizes = readdirSync(ASSETS)
    .filter((name) => name.endsWith('.js') && !portal.has(name))
    .map((name) => compressedBytes(new Set([...first, ...closureOf(name)])))
  expect(compressedBytes(first)).toBeGreaterThan(50_000)
  expect(compressedBytes(portal)).toBeGreaterThan(50_000)
  expect(Math.max(compressedBytes(portal), ...sizes)).toBeLessThan(BUDGET_BYTES)
})
