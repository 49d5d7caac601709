/**
 * The program of `npm run patroni:install`: installs the programs of a Patroni cluster from the packages of Debian. The system's own
 * list of sources names the server of the packages. If the release of the system has an older Patroni than 4.0, the program
 * downloads the package of Debian 13, checks its signature with apt, and unpacks it into a separate folder.
 */

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { findTools, UNPACKED } from './tools.ts'

const PACKAGES = ['etcd-server', 'etcd-client', 'haproxy', 'postgresql']
/** The modules that Patroni imports. */
const MODULES = ['psycopg2', 'dateutil', 'prettytable', 'psutil', 'etcd', 'yaml', 'urllib3', 'click', 'cdiff']
const RELEASE = 'trixie'
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** Prevents packages from starting services. */
const POLICY = '/usr/sbin/policy-rc.d'

/** Runs a program and returns its output. Throws with the end of the output if it fails. */
function run(program: string, args: readonly string[], cwd = '/'): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${(stderr || stdout).slice(-500)}`)
  return stdout
}

function installPackages(): void {
  const hasPolicy = existsSync(POLICY)
  if (!hasPolicy) {
    writeFileSync(POLICY, '#!/bin/sh\nexit 101\n')
    chmodSync(POLICY, 0o755)
  }
  try {
    run('apt-get', ['update', '-qq'])
    const modules = MODULES.map((name) => `python3-${name}`)
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...PACKAGES, ...modules])
  } finally {
    if (!hasPolicy) rmSync(POLICY)
  }
}

/** Returns the address of Debian's packages from the sources of the system. */
function packageServer(): string {
  const targets = run('apt-get', ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)', 'Created-By: Packages'])
  const line = targets.split('\n').find((one) => one.startsWith('Debian ') && !one.includes('security'))
  if (line === undefined) throw new Error('The sources of apt name no server with the packages of Debian.')
  return line.slice('Debian '.length)
}

function unpackPatroni(): void {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-patroni-'))
  chmodSync(folder, 0o755)
  try {
    for (const part of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(folder, part), { recursive: true })
    const list = join(folder, 'sources.list')
    writeFileSync(list, `deb [signed-by=${KEYRING}] ${packageServer()} ${RELEASE} main\n`)
    const options = Object.entries({
      'Dir::Etc::sourcelist': list,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State::lists': join(folder, 'lists'),
      'Dir::Cache': join(folder, 'cache'),
      'APT::Sandbox::User': 'root',
    }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    run('apt-get', [...options, 'update', '-qq'])
    run('apt-get', [...options, 'download', 'patroni'], folder)
    const archive = readdirSync(folder).find((name) => name.startsWith('patroni_'))
    if (archive === undefined) throw new Error('apt downloaded no package.')
    rmSync(UNPACKED, { recursive: true, force: true })
    run('dpkg-deb', ['-x', join(folder, archive), UNPACKED])
    chmodSync(UNPACKED, 0o755)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (typeof (await findTools()) === 'string') {
  installPackages()
  if (typeof (await findTools()) === 'string') unpackPatroni()
}
const tools = await findTools()
if (typeof tools === 'string') throw new Error(tools)
process.stdout.write(`Patroni, etcd, haproxy and Postgres are installed: ${JSON.stringify(tools)}\n`)
