/**
 * Packs the npm package of the client. `npm run pack:client -- <folder>` writes keyward-client-<version>.tgz into the folder
 * (default: the current one) and prints its path. `npm publish <path>` publishes the package.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { buildClient } from './build.ts'

const folder = resolve(process.argv[2] ?? '.')
const built = mkdtempSync(join(tmpdir(), 'keyward-client-'))
try {
  buildClient(built)
  mkdirSync(folder, { recursive: true })
  const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: built,
    encoding: 'utf8',
    // On Windows, npm is a script that requires a shell.
    shell: process.platform === 'win32',
  })
  console.log(join(folder, packed.trim()))
} finally {
  rmSync(built, { recursive: true })
}
