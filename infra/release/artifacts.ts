/**
 * Creates the files of a release: the packages of npm and of the other languages, the bill of materials, the OpenAPI document, and the
 * checksums of these files.
 */

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { PACKERS } from '@keyward/client/languages'
import { VERSION } from '@keyward/contract/version'

import { buildKeyward } from './keyward-package.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const CHECKSUMS = 'checksums.txt'

const npm = (args: readonly string[], cwd: string): string =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })

/** Packs the package `keyward` into the folder, with its bill of materials (CycloneDX), and returns the path of the package. */
export async function packKeyward(folder: string): Promise<string> {
  const parent = mkdtempSync(join(tmpdir(), 'keyward-package-'))
  const built = join(parent, 'keyward') // npm names the application of the bill of materials after the folder.
  try {
    mkdirSync(built)
    mkdirSync(folder, { recursive: true })
    await buildKeyward(built)
    const listing = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--omit=optional', '--omit=dev']
    writeFileSync(join(folder, `keyward-${VERSION}.cdx.json`), npm(listing, built))
    return join(folder, npm(['pack', '--silent', '--pack-destination', folder], built).trim())
  } finally {
    rmSync(parent, { recursive: true })
  }
}

/**
 * Writes all files of the release into an empty folder. Returns the languages whose packages are missing, with the tools that this machine
 * lacks.
 */
export async function createArtifacts(folder: string): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new Error(`${folder} must be empty.`)
  writeFileSync(join(folder, 'release-notes.md'), unreleased(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')))
  copyFileSync(join(ROOT, 'docs/openapi.json'), join(folder, `keyward-openapi-${VERSION}.json`))
  execFileSync(process.execPath, [join(ROOT, 'packages/client/scripts/pack.ts'), folder], { stdio: 'ignore' })
  await packKeyward(folder)
  for (const { missing, pack } of PACKERS) if (missing() === null) await pack(folder)
  const lines = readdirSync(folder).map((name) => {
    const digest = createHash('sha512')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
    return `${digest}  ${name}\n`
  })
  writeFileSync(join(folder, CHECKSUMS), lines.join(''))
  return PACKERS.flatMap(({ language, missing }) => {
    const tool = missing()
    return tool === null ? [] : [`${language} (${tool})`]
  })
}

/** Returns the entries of the changelog that no release contains. Throws when there are none. */
export function unreleased(changelog: string): string {
  const entries = (/^## \[Unreleased\]\n([^]*?)(?=^## |$(?![^]))/m.exec(changelog)?.[1] ?? '').trim()
  if (entries === '') throw new Error('CHANGELOG.md has no entries under "Unreleased".')
  return `${entries}\n`
}
