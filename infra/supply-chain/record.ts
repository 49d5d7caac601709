/**
 * `npm run record:native`: records the native files of the versions in pnpm-lock.yaml, for every platform. Downloads each
 * package with npm, verifies its integrity against the lock file, and writes native-binaries.json. Run it after an update
 * of a package with native files, and review the changed lines.
 */

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { z } from 'zod'

import { hashNativeFiles, RECORD_FILE, RECORDED_PACKAGES } from './native-binaries.ts'

const packedSchema = z.array(z.object({ filename: z.string() })).length(1)

/** Returns `name@version` and the integrity of each package with native files. `lock` is the text of pnpm-lock.yaml. */
export function lockedPackages(lock: string): { id: string; integrity: string }[] {
  const packages = lock.slice(lock.indexOf('\npackages:\n'), lock.indexOf('\nsnapshots:\n'))
  const entries = packages.matchAll(
    /^ {2}'?(@?[^@\n']+)@([^'\n:]+)'?:\n {4}resolution: \{integrity: (sha512-[\w+/=]+)\}/gm,
  )
  return [...entries].flatMap(([, name = '', version = '', integrity = '']) =>
    RECORDED_PACKAGES.test(name) ? [{ id: `${name}@${version}`, integrity }] : [],
  )
}

async function record(id: string, integrity: string, folder: string): Promise<Record<string, string>> {
  const output = execFileSync('npm', ['pack', id, '--json', '--ignore-scripts', '--pack-destination', folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [packed] = packedSchema.parse(JSON.parse(output))
  const tarball = join(folder, packed?.filename ?? '')
  const found = `sha512-${createHash('sha512')
    .update(await readFile(tarball))
    .digest('base64')}`
  if (found !== integrity) throw new Error(`${id} has the integrity ${found}; pnpm-lock.yaml requires ${integrity}`)
  execFileSync('tar', ['-xzf', tarball, '-C', folder])
  const files = await hashNativeFiles(join(folder, 'package'))
  await rm(join(folder, 'package'), { recursive: true })
  return files
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-native-'))
  try {
    const recorded: Record<string, Record<string, string>> = {}
    const lock = await readFile(join(import.meta.dirname, '../../pnpm-lock.yaml'), 'utf8')
    for (const { id, integrity } of lockedPackages(lock)) recorded[id] = await record(id, integrity, folder)
    await writeFile(RECORD_FILE, `${JSON.stringify(recorded, null, 2)}\n`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) await main()
