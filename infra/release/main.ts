/**
 * `npm run release -- <folder>` writes the files of a release into an empty folder, and prints the commands with which a person publishes
 * them. It publishes nothing. Fails when the work tree has changes or a tool of a language is missing, unless `--dry-run` is given.
 */

import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { GO_FOLDER } from '@keyward/client/languages'
import { VERSION } from '@keyward/contract/version'

import { CHECKSUMS, createArtifacts } from './artifacts.ts'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'dry-run': { type: 'boolean' } } })
const folder = resolve(positionals[0] ?? `release-${VERSION}`)
const changes = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' })
if (changes !== '' && values['dry-run'] !== true) {
  process.stderr.write(`The work tree has changes. Commit them, or use --dry-run.\n${changes}`)
  process.exit(1)
}
const missing = await createArtifacts(folder)
if (missing.length > 0) {
  process.stderr.write(`The packages of these languages are missing, because a tool is: ${missing.join(', ')}.\n`)
  if (values['dry-run'] !== true) process.exit(1)
}
const goTag = `${GO_FOLDER}/v${VERSION}`
for (const name of readdirSync(folder))
  process.stdout.write(`${String(statSync(join(folder, name)).size).padStart(12)}  ${name}\n`)
process.stdout.write(`
To publish version ${VERSION}, after .ci/run has passed, in ${folder}:

  sha512sum --check ${CHECKSUMS}
  npm publish --provenance keyward-${VERSION}.tgz && npm publish --provenance keyward-client-${VERSION}.tgz
  git tag --sign v${VERSION} && git tag --sign ${goTag} && git push origin v${VERSION} ${goTag}    # the second is the Go module
  twine upload keyward-${VERSION}.tar.gz keyward-${VERSION}-py3-none-any.whl
  dotnet nuget push Keyward.Client.${VERSION}.nupkg
  mvn gpg:sign-and-deploy-file -DpomFile=keyward-client-${VERSION}.pom -Dfile=keyward-client-${VERSION}.jar -Dsources=keyward-client-${VERSION}-sources.jar
  # Composer reads a package from the root of a repository: commit the content of keyward-php-${VERSION}.zip to that of keyward/client.
  # Attach all files to the release of the tag. C++ is installed from keyward-cpp-${VERSION}.zip.
  REGISTRY=… docker buildx bake --file infra/bake.json --sbom=true --provenance=mode=max --push    # in the work tree
  cosign sign …@sha256:…    # each image, by its digest

Then replace "[Unreleased]" in CHANGELOG.md by the version and the date, and set the next version.
`)
