/**
 * `npm run release -- <folder>` writes the files of a release into an empty folder, and prints the commands with which a person publishes
 * them. It publishes nothing. Fails when the work tree has changes, unless `--dry-run` is given.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { VERSION } from '@keyward/contract/version'

import { CHECKSUMS, createArtifacts } from './artifacts.ts'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'dry-run': { type: 'boolean' } } })
const folder = resolve(positionals[0] ?? `release-${VERSION}`)
const changes = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' })
if (changes !== '' && values['dry-run'] !== true) {
  process.stderr.write(`The work tree has changes. Commit them, or use --dry-run.\n${changes}`)
  process.exit(1)
}
await createArtifacts(folder)
for (const name of readdirSync(folder))
  process.stdout.write(`${String(statSync(join(folder, name)).size).padStart(12)}  ${name}\n`)
process.stdout.write(`
To publish version ${VERSION}, after .ci/run has passed, in ${folder}:

  sha512sum --check ${CHECKSUMS}
  npm publish --provenance keyward-${VERSION}.tgz && npm publish --provenance keyward-client-${VERSION}.tgz
  git tag --sign v${VERSION} && git push origin v${VERSION}
  REGISTRY=… docker buildx bake --file infra/bake.json --sbom=true --provenance=mode=max --push    # in the work tree
  cosign sign …@sha256:…    # each image, by its digest

Then replace "[Unreleased]" in CHANGELOG.md by the version and the date, and set the next version.
`)
