/**
 * Runs the version of pnpm that package.json names, after a comparison of its integrity with the recorded one. npx does not compare them.
 * It is plain JavaScript, because it runs before packages are installed.
 */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
const [, spec, hash] = /"packageManager": "(pnpm@[\d.]+)\+sha512\.([0-9a-f]{128})"/.exec(text) ?? []
if (spec === undefined || hash === undefined) throw new Error('packageManager must be pnpm@VERSION+sha512.HEX')
const expected = `sha512-${Buffer.from(hash, 'hex').toString('base64')}`

// npm compares the download with this value. Without a network there is no value, and npx uses only its cache.
const view = spawnSync('npm', ['view', spec, 'dist.integrity'], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
})
const served = view.stdout.trim()
if (served !== '' && served !== expected) {
  process.stderr.write(`The registry serves ${spec} with the integrity ${served}; package.json requires ${expected}\n`)
  process.exit(1)
}
const { status } = spawnSync('npx', ['--yes', spec, ...process.argv.slice(2)], { stdio: 'inherit' })
process.exit(status ?? 1)
