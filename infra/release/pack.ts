/** `npm run pack:keyward -- <folder>` writes keyward-<version>.tgz into the folder (default: the current one) and prints its path. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { buildKeyward } from './keyward-package.ts'

const folder = resolve(process.argv[2] ?? '.')
const built = mkdtempSync(join(tmpdir(), 'keyward-package-'))
try {
  await buildKeyward(built)
  mkdirSync(folder, { recursive: true })
  const packed = execFileSync('npm', ['pack', '--loglevel=error', '--pack-destination', folder], {
    cwd: built,
    encoding: 'utf8',
  })
  console.log(join(folder, packed.trim()))
} finally {
  rmSync(built, { recursive: true })
}
