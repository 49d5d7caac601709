/**
 * The digest of this program. An index file holds what a program made of the rows of the database, so one that was written by
 * another version is not read, whatever has changed between the two.
 */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describeImage } from '@keyward/engine'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
/** What decides how a row becomes a part of the index. */
const FOLDERS = [
  'packages/address/src',
  'packages/contract/src',
  'packages/database/migrations',
  'packages/database/src',
  'packages/engine/src',
  'services/validator/src',
]

/** Returns the digest of the sources, of Node, and of the layout of the index. */
export function programDigest(): string {
  const hash = createHash('sha256').update(`${process.version} ${process.arch} ${describeImage()}`)
  for (const folder of FOLDERS) {
    const files = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    )
    for (const file of files.map(({ parentPath, name }) => join(parentPath, name)).toSorted()) {
      hash.update(`\n${file.slice(ROOT.length)}\n`).update(readFileSync(file))
    }
  }
  return hash.digest('hex')
}
