/**
 * Installs the packed client with npm into a folder outside the workspace. Its dependencies are packed from the copies of the
 * workspace, so that npm needs no network.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const curves = realpathSync(join(root, 'packages/license-file/node_modules/@noble/curves'))
const hashes = realpathSync(join(dirname(curves), 'hashes'))

/** Creates a folder with the packed client under its node_modules. The caller removes it. */
export function installClient(): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-installed-'))
  const pack = fileURLToPath(new URL('../scripts/pack.ts', import.meta.url))
  const tarball = execFileSync(process.execPath, [pack, folder], { encoding: 'utf8' }).trim()
  const packed = [curves, hashes].map((dependency) => {
    const name = npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], dependency)
    return join(folder, name.trim())
  })
  writeFileSync(join(folder, 'package.json'), '{"name":"app","private":true,"type":"module"}')
  npm(['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', tarball, ...packed], folder)
  return folder
}

function npm(args: string[], cwd: string): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', shell: process.platform === 'win32' })
}
