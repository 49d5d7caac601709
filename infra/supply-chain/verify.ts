/**
 * Compares the native files of installed packages with the recorded ones. Runs after each installation, before a program
 * loads the files. Exits with 1 and one line for each difference.
 */

import { join } from 'node:path'

import { differences, findInstalled, hashNativeFiles, readRecorded } from './native-binaries.ts'

const root = process.argv[2] ?? join(import.meta.dirname, '../..')
const recorded = await readRecorded()
const found = await Promise.all(
  (await findInstalled(root)).map(async ({ id, folder }) => differences(id, await hashNativeFiles(folder), recorded)),
)
const lines = found.flat()
if (lines.length > 0) {
  process.stderr.write(`${lines.join('\n')}\nDo not run these packages. Follow docs/operations/supply-chain.md.\n`)
  process.exitCode = 1
}
