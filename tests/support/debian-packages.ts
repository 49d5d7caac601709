/**
 * Installs and downloads packages of Debian. The apt sources of the system determine the package server. apt checks the
 * signatures of the packages.
 */

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The release whose packages are unpacked beside those of the system. */
const RELEASE = 'trixie'
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** Prevents packages from starting services. */
const POLICY = '/usr/sbin/policy-rc.d'

/** Runs a program and returns its output. Throws an error with the end of the output if the program fails. */
export function run(program: string, args: readonly string[], cwd = '/'): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${(stderr || stdout).slice(-500)}`)
  return stdout
}

/** Installs packages of the system's release without starting their services. Needs root. */
export function installPackages(names: readonly string[]): void {
  const hasPolicy = existsSync(POLICY)
  if (!hasPolicy) {
    writeFileSync(POLICY, '#!/bin/sh\nexit 101\n')
    chmodSync(POLICY, 0o755)
  }
  try {
    run('apt-get', ['update', '-qq'])
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names])
  } finally {
    if (!hasPolicy) rmSync(POLICY)
  }
}

/** Returns the address of the Debian package server from the apt sources of the system. */
export function packageServer(): string {
  const targets = run('apt-get', ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)', 'Created-By: Packages'])
  const line = targets.split('\n').find((one) => one.startsWith('Debian ') && !one.includes('security'))
  if (line === undefined) throw new Error('The sources of apt name no server with the packages of Debian.')
  return line.slice('Debian '.length)
}

/** Downloads packages of Debian 13 and unpacks them into `target`, which it replaces. */
export function unpackPackages(names: readonly string[], target: string): void {
  download(`deb [signed-by=${KEYRING}] ${packageServer()} ${RELEASE} main`, ['download', ...names], (folder) => {
    rmSync(target, { recursive: true, force: true })
    for (const archive of readdirSync(folder).filter((name) => name.endsWith('.deb')))
      run('dpkg-deb', ['-x', join(folder, archive), target])
    chmodSync(target, 0o755)
  })
}

/**
 * Downloads the source of a package of a Debian release, without Debian's changes, and unpacks it into `target`, which it replaces. The
 * first folder of the archive is left out.
 */
export function unpackSource(name: string, release: string, target: string): void {
  const source = `deb-src [signed-by=${KEYRING}] ${packageServer()} ${release} main`
  download(source, ['source', '--download-only', name], (folder) => {
    const archive = readdirSync(folder).find((file) => file.includes('.orig.tar'))
    if (archive === undefined) throw new Error(`The source package ${name} of ${release} contains no original archive.`)
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    run('tar', ['-C', target, '--strip-components=1', '-xf', join(folder, archive)])
  })
}

/** Runs a command of apt-get in a temporary folder, with `source` as the only source of packages. `use` receives the folder. */
function download(source: string, command: readonly string[], use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-packages-'))
  chmodSync(folder, 0o755)
  try {
    for (const part of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(folder, part), { recursive: true })
    const list = join(folder, 'sources.list')
    writeFileSync(list, `${source}\n`)
    const options = Object.entries({
      'Dir::Etc::sourcelist': list,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State::lists': join(folder, 'lists'),
      'Dir::Cache': join(folder, 'cache'),
      'APT::Sandbox::User': 'root',
    }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    run('apt-get', [...options, 'update', '-qq'])
    run('apt-get', [...options, ...command], folder)
    use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
