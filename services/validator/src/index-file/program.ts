/**
 * Computes the digest of this program. The content of an index file depends on the code that converts rows of the database.
 * Therefore a file that another version of the program wrote is not restored.
 */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describeImage } from '@keyward/engine'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
/** The folders whose code determines how a row is stored in the index. */
const FOLDERS = [
  'packages/address/src',
  'packages/contract/src',
  'packages/database/functions',
  'packages/database/migrations',
  'packages/database/src',
  'packages/engine/src',
  'services/validator/src',
]

/** Returns a digest of the sources, the version and architecture of Node.js, and the layout of the index. */
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
